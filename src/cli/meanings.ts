/** What the standard resource classes count. */
const classes: Readonly<Record<string, string>> = {
  VCPU: 'CPUs of a virtual machine that may share physical ones with others',
  PCPU: 'physical CPUs that a virtual machine has for itself',
  MEMORY_MB: 'memory, in MiB',
  DISK_GB: 'disk space, in GiB',
  PCI_DEVICE: 'whole PCI devices',
  SRIOV_NET_VF: 'virtual functions of a network card (SR-IOV)',
  NUMA_SOCKET: 'CPU sockets of a NUMA node',
  NUMA_CORE: 'CPU cores of a NUMA node',
  NUMA_THREAD: 'hardware threads of a NUMA node',
  NUMA_MEMORY_MB: 'memory of a NUMA node, in MiB',
  IPV4_ADDRESS: 'IPv4 addresses of a pool',
  VGPU: 'virtual GPUs: parts of a physical one that several consumers share',
  VGPU_DISPLAY_HEAD: 'displays of virtual GPUs',
  PGPU: 'whole physical GPUs, each for one consumer',
  FPGA: 'FPGAs',
  MEM_ENCRYPTION_CONTEXT: 'guests whose memory a CPU can encrypt at the same time',
  NET_BW_EGR_KILOBIT_PER_SEC: 'outgoing network bandwidth, in kbit/s',
  NET_BW_IGR_KILOBIT_PER_SEC: 'incoming network bandwidth, in kbit/s',
  NET_PACKET_RATE_KILOPACKET_PER_SEC: 'network packets both ways, in 1000/s',
  NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC: 'outgoing network packets, in 1000/s',
  NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC: 'incoming network packets, in 1000/s',
};

/** The meaning of single traits. */
const traits: Readonly<Record<string, string>> = {
  COMPUTE_ACCELERATORS: 'can attach accelerators',
  COMPUTE_CONFIG_DRIVE_REGENERATION: 'can write the config drive of a guest anew',
  COMPUTE_DEVICE_TAGGING: 'devices of a guest can have tags',
  COMPUTE_EPHEMERAL_ENCRYPTION: 'can encrypt local disks',
  COMPUTE_MANAGED_PCI_DEVICE: 'the provider is a PCI device that Nova manages',
  COMPUTE_MEM_BACKING_FILE: 'the memory of a guest can be in a file',
  COMPUTE_MIGRATE_AUTO_CONVERGE: 'slows a guest down to end its live migration',
  COMPUTE_MIGRATE_POST_COPY: 'live migration may copy memory after the switch',
  COMPUTE_NET_ATTACH_INTERFACE: 'can attach network interfaces to a running guest',
  COMPUTE_NET_ATTACH_INTERFACE_WITH_TAG: 'can attach network interfaces with a tag to a running guest',
  COMPUTE_NET_VIRTIO_PACKED: 'virtio network devices with packed rings',
  COMPUTE_NODE: 'the provider is a compute node',
  COMPUTE_REMOTE_MANAGED_PORTS: 'network ports that a smart network card manages',
  COMPUTE_RESCUE_BFV: 'can rescue a guest that boots from a volume',
  COMPUTE_SAME_HOST_COLD_MIGRATE: 'cold migration may stay on the same host',
  COMPUTE_SECURITY_STATELESS_FIRMWARE: 'firmware of guests may be read-only',
  COMPUTE_SECURITY_UEFI_SECURE_BOOT: 'guests can boot by UEFI Secure Boot',
  COMPUTE_SHARE_LOCAL_FS: 'can share a file system of the host with a guest',
  COMPUTE_SOCKET_PCI_NUMA_AFFINITY: 'can keep PCI devices and CPUs on one socket',
  COMPUTE_STATUS_DISABLED: 'the compute service is disabled: nothing new is placed here',
  COMPUTE_STORAGE_VIRTIO_FS: 'can share files with a guest by virtiofs',
  COMPUTE_TRUSTED_CERTS: 'verifies signatures of images by trusted certificates',
  COMPUTE_VOLUME_ATTACH: 'can attach volumes to a running guest',
  COMPUTE_VOLUME_ATTACH_WITH_TAG: 'can attach volumes with a tag to a running guest',
  COMPUTE_VOLUME_EXTEND: 'can extend an attached volume',
  COMPUTE_VOLUME_MULTI_ATTACH: 'can attach volumes that several guests have',
  HW_CPU_AMD_SEV: 'AMD CPU that encrypts the memory of guests (older name)',
  HW_CPU_HYPERTHREADING: 'CPU cores have several threads',
  HW_CPU_X86_AESNI: 'x86 CPU: AES instructions',
  HW_CPU_X86_AMD_SEV: 'x86 CPU: encrypts the memory of guests (AMD SEV)',
  HW_CPU_X86_AMD_SVM: 'x86 CPU: virtualization by hardware (AMD)',
  HW_CPU_X86_INTEL_VMX: 'x86 CPU: virtualization by hardware (Intel)',
  HW_CPU_X86_SGX: 'x86 CPU: protected enclaves in memory (Intel SGX)',
  HW_CPU_X86_SVM: 'x86 CPU: virtualization by hardware (AMD; older name)',
  HW_CPU_X86_VMX: 'x86 CPU: virtualization by hardware (Intel; older name)',
  HW_GPU_API_VULKAN: 'GPU: Vulkan',
  HW_GPU_API_DXVA: 'GPU: DirectX Video Acceleration',
  HW_NIC_DCB_ETS: 'network card: enhanced transmission selection',
  HW_NIC_DCB_PFC: 'network card: priority flow control',
  HW_NIC_DCB_QCN: 'network card: congestion notification',
  HW_NIC_MULTIQUEUE: 'network card: several queues',
  HW_NIC_PROGRAMMABLE_PIPELINE: 'network card: a programmable pipeline',
  HW_NIC_SRIOV: 'network card: SR-IOV',
  HW_NIC_SRIOV_MULTIQUEUE: 'network card: several queues in a virtual function',
  HW_NIC_SRIOV_QOS_RX: 'network card: limits what a virtual function receives',
  HW_NIC_SRIOV_QOS_TX: 'network card: limits what a virtual function sends',
  HW_NIC_SRIOV_TRUSTED: 'network card: virtual functions may be trusted',
  HW_NIC_VMDQ: 'network card: queues for each virtual machine (VMDq)',
  HW_NUMA_ROOT: 'the provider is a NUMA node',
  HW_NVME_BES: 'NVMe disk: erases blocks',
  HW_NVME_CES: 'NVMe disk: erases by a new encryption key',
  HW_NVME_WZS: 'NVMe disk: writes zeroes by a command',
  HW_PCI_LIVE_MIGRATABLE: 'PCI device: may be migrated live',
  HW_PCI_ONE_TIME_USE: 'PCI device: for one consumer, then reserved until it is cleaned',
  MISC_SHARES_VIA_AGGREGATE: 'shares what it has with all providers of its aggregates',
  OWNER_CYBORG: 'Cyborg manages the provider',
  OWNER_NOVA: 'Nova manages the provider',
  STORAGE_DISK_HDD: 'hard disk',
  STORAGE_DISK_SSD: 'solid-state disk',
};

/** The meaning of families of traits, by the beginning of their names; the rest of the name follows the text. */
const families: readonly (readonly [prefix: string, meaning: string])[] = [
  ['COMPUTE_ADDRESS_SPACE_', 'limits the memory addresses of guests:'],
  ['COMPUTE_ARCH_', 'can run guests of the architecture'],
  ['COMPUTE_EPHEMERAL_ENCRYPTION_', 'can encrypt local disks in the format'],
  ['COMPUTE_FIRMWARE_', 'can boot guests by'],
  ['COMPUTE_GRAPHICS_MODEL_', 'guests can have the graphics card'],
  ['COMPUTE_IMAGE_TYPE_', 'can boot images of the format'],
  ['COMPUTE_NET_VIF_MODEL_', 'guests can have the network card'],
  ['COMPUTE_SECURITY_TPM_SECRET_SECURITY_', 'the secret of an emulated TPM may belong to:'],
  ['COMPUTE_SECURITY_TPM_', 'guests can have an emulated TPM:'],
  ['COMPUTE_SOUND_MODEL_', 'guests can have the sound card'],
  ['COMPUTE_STORAGE_BUS_', 'disks of guests can be at the bus'],
  ['COMPUTE_USB_MODEL_', 'guests can have the USB controller'],
  ['COMPUTE_VIOMMU_MODEL_', 'guests can have the virtual IOMMU'],
  ['HW_ARCH_', 'processors of the architecture'],
  ['HW_CPU_AARCH64_', 'Arm CPU:'],
  ['HW_CPU_PPC64LE_', 'POWER CPU:'],
  ['HW_CPU_X86_', 'x86 CPU:'],
  ['HW_GPU_API_', 'GPU:'],
  ['HW_GPU_CUDA_COMPUTE_CAPABILITY_', 'GPU: CUDA compute capability'],
  ['HW_GPU_CUDA_SDK_', 'GPU: CUDA SDK'],
  ['HW_GPU_MAX_DISPLAY_HEADS_', 'GPU: displays at most:'],
  ['HW_GPU_RESOLUTION_', 'GPU: a resolution of'],
  ['HW_NIC_ACCEL_', 'network card: accelerates'],
  ['HW_NIC_OFFLOAD_', 'network card: takes over from the CPU:'],
];

const custom = 'defined here; its users know the meaning';

/** What a resource class counts, for people; empty for an unknown class. */
export const meaningOfClass = (name: string): string => classes[name] ?? (name.startsWith('CUSTOM_') ? custom : '');

/** What a provider with this trait has or can do, for people; empty for an unknown trait. */
export function meaningOfTrait(name: string): string {
  if (name.startsWith('CUSTOM_')) return custom;
  const family = families.find(([prefix]) => name.startsWith(prefix));
  return traits[name] ?? (family === undefined ? '' : `${family[1]} ${readable(name.slice(family[0].length))}`);
}

/** `OPENGL_V4_5` as OPENGL 4.5. */
const readable = (text: string): string =>
  text
    .replaceAll(
      /(?:^|_)V(\d+)(?:_(\d+))?/g,
      (_, major: string, minor?: string) => ` ${major}${minor ? `.${minor}` : ''}`,
    )
    .replaceAll('_', ' ')
    .trim();

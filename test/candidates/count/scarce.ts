import type { Node, Stock, Topology } from '../topology.ts';

/** Small amounts of everything, so that all ways to distribute it can be tried. */
export const scarce = (topology: Topology): Topology =>
  topology.slice(0, 5).map((node): Node => {
    const less = (stock: Stock | undefined) =>
      stock && { ...stock, total: Math.min(stock.total, 4), allocation_ratio: Math.min(stock.allocation_ratio, 1.5) };
    const { VCPU, MEMORY_MB, DISK_GB, SRIOV_NET_VF } = node.stock;
    return {
      ...node,
      stock: { VCPU: less(VCPU), MEMORY_MB: less(MEMORY_MB), DISK_GB: less(DISK_GB), SRIOV_NET_VF: less(SRIOV_NET_VF) },
    };
  });

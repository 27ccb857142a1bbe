/**
 * SHA-1 of some bytes, for UUIDs of version 5. The client implements it because it also runs in browsers and has no
 * dependencies: Web Crypto is asynchronous, and pages without TLS do not have it.
 */
export function sha1(message: Uint8Array): Uint8Array {
  const padded = new Uint8Array(Math.ceil((message.length + 9) / 64) * 64);
  padded.set(message);
  padded[message.length] = 0x80;
  const words = new DataView(padded.buffer);
  words.setUint32(padded.length - 8, Math.floor(message.length / 0x20000000));
  words.setUint32(padded.length - 4, (message.length * 8) >>> 0);
  const state = new Uint32Array([0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0]);
  const schedule = new Uint32Array(80);
  const at = (array: Uint32Array, index: number): number => array[index] ?? 0;
  for (let block = 0; block < padded.length; block += 64) {
    for (let step = 0; step < 80; step += 1) {
      const mixed = at(schedule, step - 3) ^ at(schedule, step - 8) ^ at(schedule, step - 14) ^ at(schedule, step - 16);
      schedule[step] = step < 16 ? words.getUint32(block + step * 4) : rotated(mixed, 1);
    }
    let [a = 0, b = 0, c = 0, d = 0, e = 0] = state;
    for (let step = 0; step < 80; step += 1) {
      const sum = rotated(a, 5) + roundOf(step, b, c, d) + e + at(schedule, step);
      [e, d, c, b, a] = [d, c, rotated(b, 30), a, sum >>> 0];
    }
    for (const [index, value] of [a, b, c, d, e].entries()) state[index] = at(state, index) + value;
  }
  const digest = new DataView(new ArrayBuffer(20));
  for (const [index, value] of state.entries()) digest.setUint32(index * 4, value);
  return new Uint8Array(digest.buffer);
}

const rotated = (word: number, bits: number): number => (word << bits) | (word >>> (32 - bits));

/** The function of a step, and its constant. */
function roundOf(step: number, b: number, c: number, d: number): number {
  if (step < 20) return ((b & c) | (~b & d)) + 0x5a827999;
  if (step < 40) return (b ^ c ^ d) + 0x6ed9eba1;
  if (step < 60) return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
  return (b ^ c ^ d) + 0xca62c1d6;
}

/**
 * The namespace of projects. `consumerUuid` derives the namespace of a project from it, and from that the UUID of a
 * consumer.
 */
export const consumerNamespace = '5a0f6f5c-6d0c-4a54-8c55-0e8a2b9d7c41';

/**
 * The UUID of a consumer that has a name in its project, such as a job of a CI system. It is always the same for the
 * same two texts, so a program does not have to store UUIDs. It is the UUIDv5 of the name in a namespace; the namespace
 * is the UUIDv5 of the project in `consumerNamespace`. In Python: `uuid5(uuid5(UUID(consumerNamespace), project),
 * name)`.
 *
 * The service finds the consumer by its UUID; a claim may also set its name (from 2.9). If the consumer moves to another project
 * later, its UUID stays the UUID of its name in the first project.
 */
export const consumerUuid = (project: string, name: string): string =>
  uuidFrom(uuidFrom(consumerNamespace, project), name);

/** The namespace of providers whose UUID is derived from their name. */
export const providerNamespace = '97eafd10-044c-4bd1-84d9-1245179ca4f6';

/** The namespace of aggregates that have a name. */
export const aggregateNamespace = '8071013f-f4b4-468e-82c1-4a91f7d62644';

/**
 * The UUID of a provider that has no other one: the UUIDv5 of its name in `providerNamespace`. In Python:
 * `uuid5(UUID(providerNamespace), name)`. `placement apply` uses it for the providers that it creates.
 */
export const providerUuid = (name: string): string => uuidFrom(providerNamespace, name);

/**
 * The UUID of an aggregate that has a name, such as a rack: the UUIDv5 of the name in `aggregateNamespace`. The service knows aggregates
 * by their UUIDs only.
 */
export const aggregateUuid = (name: string): string => uuidFrom(aggregateNamespace, name);

/** A UUID of version 5, as in RFC 9562. */
function uuidFrom(namespace: string, name: string): string {
  const space = namespace.replaceAll('-', '').match(/../g) ?? [];
  const hash = sha1(
    new Uint8Array([...space.map((byte) => Number.parseInt(byte, 16)), ...new TextEncoder().encode(name)]),
  );
  const bytes = [...hash.subarray(0, 16)].map((byte, index) => {
    if (index === 6) return (byte & 0x0f) | 0x50;
    return index === 8 ? (byte & 0x3f) | 0x80 : byte;
  });
  const digits = bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

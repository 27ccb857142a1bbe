import { sha1 } from './sha1.ts';

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
 * The service stores only the UUID. If the usage of the consumer is counted to another project later, its UUID is still
 * that of its name in the first project.
 */
export const consumerUuid = (project: string, name: string): string =>
  uuidFrom(uuidFrom(consumerNamespace, project), name);

/** A UUID of version 5, as in RFC 9562. */
function uuidFrom(namespace: string, name: string): string {
  const space = namespace.replaceAll('-', '').match(/../g) ?? [];
  const hash = sha1(
    new Uint8Array([...space.map((byte) => Number.parseInt(byte, 16)), ...new TextEncoder().encode(name)]),
  );
  const bytes = [...hash.subarray(0, 16)].map((byte, place) => {
    if (place === 6) return (byte & 0x0f) | 0x50;
    return place === 8 ? (byte & 0x3f) | 0x80 : byte;
  });
  const digits = bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

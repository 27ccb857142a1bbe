import { sha1 } from './sha1.ts';

/** The namespace of projects: `consumerUuid` derives from it the namespace of one project, and from that a consumer. */
export const consumerNamespace = '5a0f6f5c-6d0c-4a54-8c55-0e8a2b9d7c41';

/**
 * The UUID of a consumer that has a name in its project, such as a job of a CI system: always the same for the same two texts, so
 * that a program needs to keep no UUIDs. It is the UUIDv5 of the name in a namespace which is the UUIDv5 of the project in
 * `consumerNamespace`; in Python `uuid5(uuid5(UUID(consumerNamespace), project), name)`.
 *
 * The service keeps the UUID and not the name. A name belongs to the project that is given here, also if the consumer is counted for
 * another project later.
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

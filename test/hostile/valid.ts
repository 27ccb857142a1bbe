import { type Random, randomUuid } from '../races/random.ts';
import { uuids } from './words.ts';

/* Requests that are right, and do real work between the hostile ones. */

/** A request, and the answer that it must get. */
export type Valid = {
  readonly bytes: Buffer;
  readonly statuses: readonly number[];
  /** A part of the body of its answer. */
  readonly contained?: string;
  /** Called with whether the request was answered; what comes behind a refused request must not be carried out. */
  readonly onDone?: (isAnswered: boolean) => void;
};

/** The provider that claims take from. Hostile requests do not know it. */
const worker = '7d3c9b56-7a4f-4c41-9d15-0d5b5a0c0001';

/** A request that keeps its connection. */
function request(method: string, path: string, json?: unknown): Buffer {
  const body = json === undefined ? '' : JSON.stringify(json);
  const head = ['Host: localhost', 'X-Auth-Token: admin', 'OpenStack-API-Version: placement 1.39'];
  const more = ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`];
  const lines = [`${method} ${path} HTTP/1.1`, ...head, ...(json === undefined ? [] : more), '', ''];
  return Buffer.from(lines.join('\r\n') + body);
}

/** What the hostile requests expect to exist; some of them delete it. */
export const repairs: readonly Valid[] = uuids.map((uuid) => ({
  bytes: request('POST', '/resource_providers', { uuid, name: uuid }),
  statuses: [200, 400, 409], // 400: a hostile request set the name of another provider
}));

/** Makes the provider that claims take from; to be sent once, one after the other. */
export const preparations: readonly Valid[] = [
  { bytes: request('POST', '/resource_providers', { uuid: worker, name: worker }), statuses: [200] },
  {
    bytes: request('PUT', `/resource_providers/${worker}/inventories`, {
      resource_provider_generation: 0,
      inventories: { VCPU: { total: 1_000_000 }, MEMORY_MB: { total: 1_000_000 } },
    }),
    statuses: [200],
  },
];

/** Makes valid requests: claims, releases of what was claimed, and reads whose answers name them. */
export function openValid(random: Random): () => Valid {
  const held: string[] = [];
  const notClaimed: string[] = [];
  const claim = (): Valid => {
    const consumer = randomUuid(random);
    const body = {
      allocations: { [worker]: { resources: { VCPU: 1, MEMORY_MB: 1 } } },
      project_id: 'p',
      user_id: 'u',
      consumer_generation: null,
      consumer_type: 'INSTANCE',
    };
    return {
      bytes: request('PUT', `/allocations/${consumer}`, body),
      statuses: [204],
      onDone: (isAnswered) => (isAnswered ? held : notClaimed).push(consumer),
    };
  };
  const release = (consumer: string): Valid => ({
    bytes: request('DELETE', `/allocations/${consumer}`),
    statuses: [204],
    onDone: (isAnswered) => {
      if (!isAnswered) held.push(consumer);
    },
  });
  const check = (consumer: string): Valid => ({
    bytes: request('GET', `/allocations/${consumer}`),
    statuses: [200],
    contained: '"allocations":{}',
  });
  const read = (): Valid => {
    const id = randomUuid(random);
    return random.pick<() => Valid>([
      () => ({ bytes: request('GET', `/resource_providers/${id}`), statuses: [404], contained: id }),
      () => ({ bytes: request('GET', `/resource_providers?in_tree=x${id}`), statuses: [400], contained: `x${id}` }),
      () => ({ bytes: request('GET', `/resource_providers/${worker}`), statuses: [200], contained: worker }),
      () => ({
        bytes: request('GET', '/allocation_candidates?resources=VCPU:1&limit=3'),
        statuses: [200],
        contained: 'allocation_requests',
      }),
      () => ({ bytes: request('POST', '/resource_providers', { [`a${id}`]: 1 }), statuses: [400], contained: id }),
    ])();
  };
  return () => {
    const unproved = notClaimed.pop();
    if (unproved !== undefined) return check(unproved);
    if (random.percent(60)) return read();
    const consumer = held.length > 100 || random.percent(50) ? held.shift() : undefined;
    return consumer === undefined ? claim() : release(consumer);
  };
}

import { randomUUID } from 'node:crypto';
import type { PlacementService } from '../../src/start/service.ts';
import { type Engine, withFreshDatabase } from '../support/engines.ts';
import { type Answer, accepted, at, makeProvider, requestsTo, type Send } from '../support/requests.ts';
import { type ConfigOverrides, openServiceOn } from '../support/services.ts';
import { until } from '../support/until.ts';

/** A claim of units of PGPU that may wait. */
export type ClaimRequest = {
  readonly uuid?: string;
  readonly amount?: number;
  readonly query?: string;
  readonly project?: string;
  readonly type?: string;
  /** Seconds; none by default at most 20. */
  readonly wait?: number | string;
  readonly line?: string;
  readonly more?: Readonly<Record<string, unknown>>;
};

/** One service, and what tests ask of it. */
export type TestedService = {
  readonly service: PlacementService;
  readonly send: Send;
  /** Claims by query, and waits. */
  readonly claim: (options?: ClaimRequest) => Promise<Answer>;
  /** Claims now, on the host, and must succeed. @returns the consumer */
  readonly take: (amount: number, project?: string) => Promise<string>;
  readonly release: (uuid: string) => Promise<void>;
  /** The claims that wait, as GET /waiting shows them. */
  readonly listed: (query?: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Resolves when so many claims are listed. */
  readonly untilListed: (count: number, query?: string) => Promise<void>;
};

export const version = 'placement 2.8';
export const host = randomUUID();

/** A request with further headers. */
export const sendWith = (
  service: Pick<PlacementService, 'app'>,
  method: string,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>>,
): Promise<Answer> => requestsTo(service, version)(method, path, body, version, headers);

/** The part of the body that is of one consumer. */
export const consumerBody = ({ amount = 1, query, project = 'ci', type = 'JOB', more }: ClaimRequest): object => ({
  candidates: query ?? `resources=PGPU:${amount}`,
  project_id: project,
  user_id: 'ada',
  consumer_type: type,
  consumer_generation: null,
  ...more,
});

export function testedServiceOf(service: PlacementService): TestedService {
  const send = requestsTo(service, version);
  const listed: TestedService['listed'] = async (query = '') => {
    const { json } = accepted(await send('GET', `/waiting${query}`));
    return at(json, 'waiting') as readonly Readonly<Record<string, unknown>>[]; // the list of GET /waiting
  };
  return {
    service,
    send,
    claim: (options = {}) => {
      const { uuid = randomUUID(), wait = 20, line } = options;
      const body = { ...consumerBody(options), ...(line === undefined ? {} : { line }) };
      return sendWith(service, 'PUT', `/allocations/${uuid}`, body, wait === '' ? {} : { prefer: `wait=${wait}` });
    },
    take: async (amount, project = 'others') => {
      const uuid = randomUUID();
      accepted(await send('PUT', `/allocations/${uuid}`, consumerBody({ amount, project })));
      return uuid;
    },
    release: async (uuid) => {
      accepted(await send('DELETE', `/allocations/${uuid}`));
    },
    listed,
    untilListed: (count, query) =>
      until(`${count} claims are listed`, async () => (await listed(query)).length === count),
  };
}

/** Calls back with a host that has so many units of PGPU, and services on one database. */
export async function withTestedServices(
  engine: Engine,
  { units = 4, services = 1, overrides = {} }: { units?: number; services?: number; overrides?: ConfigOverrides },
  use: (...services: [TestedService, ...TestedService[]]) => Promise<void>,
): Promise<void> {
  await withFreshDatabase(engine, async (database) => {
    const opened: PlacementService[] = [];
    try {
      for (let index = 0; index < services; index += 1) opened.push(await openServiceOn(database, overrides));
      const [first, ...others] = opened.map(testedServiceOf);
      if (first === undefined) throw new Error('There is no service.');
      await makeProvider(first.send, host, { PGPU: { total: units } });
      await use(first, ...others);
    } finally {
      for (const service of opened) service.endWaits();
      for (const service of opened) await service.close();
    }
  });
}

import type * as v from 'valibot';
import type { ProviderWrite } from '../../db/statements/providers/provider_write.ts';
import type { Dependencies } from '../api/dependencies.ts';
import { findProvider } from '../api/resource_providers/provider.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import type { Provider } from '../fleet/model/provider.ts';
import { type Answer, type ApiRequest, noContent } from '../rest/endpoint.ts';
import { ApiError, concurrentlyUpdated, conflict, errorCodes } from '../rest/errors.ts';

/** The write for a request, and what its answer needs. There is no write where nothing has to change. */
type Plan = { readonly write: ProviderWrite | undefined };

/** How a request that changes a provider is checked, and what is to be written for it. */
type Judgement<P extends Plan> = {
  /** @throws ApiError 412 where the resource does not match If-Match */
  readonly match: (provider: Provider, fleet: Fleet) => void;
  /** @throws ApiError where the request is refused */
  readonly judge: (provider: Provider, fleet: Fleet) => P;
  /** The error for a write that lost its guard twice. */
  readonly lostRace: () => ApiError;
};

/** What was written, and the fleet as it is afterwards. */
type Written<P extends Plan> = { readonly plan: P; readonly shown: Fleet };

/**
 * Changes the provider of the path. The request is first judged by the fleet in memory, without a refresh, and the
 * guard of the write proves that this was not stale. Where the request is refused, needs no write, or the write loses
 * its guard, it is judged again after a refresh.
 *
 * @throws ApiError 404, what the judgement throws, or 412 or its `lostRace` where the write lost its guard twice.
 */
export async function writeJudged<P extends Plan>(
  { fleet, providerWrites }: Dependencies,
  request: ApiRequest,
  { match, judge, lostRace }: Judgement<P>,
): Promise<Written<P>> {
  const uuid = request.param('uuid');
  const planBy = (current: Fleet): P => {
    const provider = findProvider(current, uuid);
    match(provider, current);
    return judge(provider, current);
  };
  const plan = unlessRefused(() => planBy(fleet.known));
  if (plan?.write !== undefined) {
    const shown = await providerWrites.perform(plan.write);
    if (shown !== undefined) return { plan, shown };
  }
  const current = await fleet.fresh();
  const again = planBy(current);
  const shown = again.write === undefined ? current : await providerWrites.perform(again.write);
  if (shown !== undefined) return { plan: again, shown };
  const after = await fleet.fresh();
  match(findProvider(after, uuid), after);
  throw lostRace();
}

/**
 * Deletes something of the provider of the path, judged after a refresh. Where the write loses its guard, it is judged again after
 * a refresh: with If-Match at any generation, since the request says what it deletes; else only at the same one.
 *
 * @throws ApiError 404, what `judge` throws, or `lostRace` where the provider of a request without If-Match has another generation
 *   by then, and where the write has lost its guard each time.
 */
export async function deleteJudged(
  { fleet, providerWrites }: Dependencies,
  request: ApiRequest,
  judge: (provider: Provider, fleet: Fleet) => ProviderWrite | undefined,
  lostRace: () => ApiError,
): Promise<Answer> {
  let first: number | undefined;
  return untilWritten(async () => {
    const current = await fleet.fresh();
    const provider = findProvider(current, request.param('uuid'));
    first ??= provider.generation;
    if (request.ifMatch === undefined && provider.generation !== first) throw lostRace();
    const write = judge(provider, current);
    if (write === undefined || (await providerWrites.perform(write)) !== undefined) return noContent;
    return undefined;
  }, lostRace);
}

/**
 * Changes the provider of the path at any generation. Where the write loses its guard, the request is judged again
 * after a refresh.
 *
 * @throws ApiError 404, what `judge` throws, or 409 where the write lost its guard each time.
 */
export async function writeUntilDone<P extends { readonly write: ProviderWrite }>(
  { fleet, providerWrites }: Dependencies,
  request: ApiRequest,
  judge: (provider: Provider, fleet: Fleet) => P,
): Promise<Written<P>> {
  let current: Fleet | undefined = fleet.known;
  return untilWritten(async () => {
    current ??= await fleet.fresh();
    const plan = judge(findProvider(current, request.param('uuid')), current);
    current = undefined;
    const shown = await providerWrites.perform(plan.write);
    return shown && { plan, shown };
  });
}

/**
 * The body of a request about a provider. Where the body is wrong and the provider does not exist, the error is the
 * 404.
 */
export async function providerBody<Schema extends v.GenericSchema>(
  { fleet }: Dependencies,
  request: ApiRequest,
  schema: Schema,
): Promise<v.InferOutput<Schema>> {
  try {
    return await request.json(schema);
  } catch (error) {
    findProvider(await fleet.fresh(), request.param('uuid'));
    throw error;
  }
}

/** @throws ApiError 409 where the provider is not at the generation that the client knows. */
export function requireGeneration(provider: Provider, known: number): void {
  if (provider.generation === known) return;
  throw conflict(
    "Resource provider's generation already changed. Please update the generation and try again.",
    errorCodes.concurrentUpdate,
  );
}

function unlessRefused<T>(judge: () => T): T | undefined {
  try {
    return judge();
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

/**
 * How often a request is judged and written whose client names no generation. Each time another request has changed
 * what it was judged by, so that many in a row mean that others always come first.
 */
const mostAttempts = 32;

const lostEachTime = (): ApiError => conflict(concurrentlyUpdated, errorCodes.concurrentUpdate);

/**
 * Judges and writes a request, again and again until it is written or refused.
 *
 * @param attempt resolves with undefined if another request has changed meanwhile what it was judged by
 * @param lostRace the error after the last attempt
 * @throws ApiError what `attempt` throws, or `lostRace`
 */
export async function untilWritten<Written>(
  attempt: () => Promise<Written | undefined>,
  lostRace = lostEachTime,
): Promise<Written> {
  for (let made = 0; made < mostAttempts; made += 1) {
    const written = await attempt();
    if (written !== undefined) return written;
  }
  throw lostRace();
}

import type * as v from 'valibot';
import type { ProviderWrite } from '../../../db/statements/providers/provider_write.ts';
import type { Fleet } from '../../fleet/model/fleet.ts';
import type { Provider } from '../../fleet/model/provider.ts';
import { ApiError, errorCodes } from '../../request/errors.ts';
import { untilDone } from '../../request/until_done.ts';
import { type Answer, type ApiRequest, noContent } from '../../rest/endpoint.ts';
import type { Dependencies } from '../dependencies.ts';
import { findProvider } from './provider.ts';

/** The write for a request, and what its answer needs. There is no write where nothing has to change. */
type WritePlan = { readonly write: ProviderWrite | undefined };

/** What was written, and the fleet as it is afterwards. */
type WrittenProvider<P extends WritePlan> = { readonly plan: P; readonly shown: Fleet };

/**
 * Changes the provider of the path. The request is first judged by the fleet in memory, without a refresh, and the
 * guard of the write proves that the fleet was not stale. Where the request is refused, needs no write, or the write
 * loses its guard, the request is judged again after a refresh.
 *
 * @param judge returns the write; it throws an ApiError where the request is refused
 * @param options.isFirstFresh whether the fleet is refreshed also before the request is judged for the first time
 * @throws ApiError 404, what `judge` throws, or 409 where the write has lost its guard each time
 */
export async function writeJudged<P extends WritePlan>(
  { fleet, providerWrites }: Dependencies,
  request: ApiRequest,
  judge: (provider: Provider, fleet: Fleet) => P,
  { isFirstFresh = false, lostRace }: { readonly isFirstFresh?: boolean; readonly lostRace?: () => ApiError } = {},
): Promise<WrittenProvider<P>> {
  const attempt = async (made: number): Promise<WrittenProvider<P> | undefined> => {
    const isFresh = made > 0 || isFirstFresh;
    const current = isFresh ? await fleet.fresh() : fleet.known;
    const planned = (): P => judge(findProvider(current, request.param('uuid')), current);
    const plan = isFresh ? planned() : unlessRefused(planned);
    if (plan?.write === undefined) return isFresh && plan !== undefined ? { plan, shown: current } : undefined;
    const shown = await providerWrites.perform(plan.write);
    return shown && { plan, shown };
  };
  return untilDone(attempt, { lostRace });
}

/**
 * Deletes something of the provider of the path, judged after a refresh. Where the write loses its guard, the request is judged again
 * after a refresh: with If-Match at any generation, since the request says what it deletes; else only at the same generation.
 *
 * @throws ApiError 404, what `judge` throws, or `lostRace` where the provider of a request without If-Match then has another
 *   generation, and where the write has lost its guard each time.
 */
export async function deleteJudged(
  dependencies: Dependencies,
  request: ApiRequest,
  judge: (provider: Provider, fleet: Fleet) => ProviderWrite | undefined,
  lostRace: () => ApiError,
): Promise<Answer> {
  let first: number | undefined;
  const judgeSame = (provider: Provider, fleet: Fleet): WritePlan => {
    first ??= provider.generation;
    if (request.ifMatch === undefined && provider.generation !== first) throw lostRace();
    return { write: judge(provider, fleet) };
  };
  await writeJudged(dependencies, request, judgeSame, { isFirstFresh: true, lostRace });
  return noContent;
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

/**
 * Compares the generation of a provider with the one that the client knows.
 *
 * @param refusal the error text, which upstream words differently for inventories
 * @throws ApiError 409
 */
export function requireGeneration(provider: Provider, known: number, refusal = alreadyChanged): void {
  const { name, generation } = provider;
  if (generation === known) return;
  throw new ApiError(409, refusal, {
    code: errorCodes.concurrentUpdate,
    sentence: `${refusal.replace(/\.?$/, '.')} That of ${name} is ${generation}, and the request has ${known}.`,
  });
}

const alreadyChanged = "Resource provider's generation already changed. Please update the generation and try again.";

function unlessRefused<T>(judge: () => T): T | undefined {
  try {
    return judge();
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

import type * as v from 'valibot';
import type { ProviderWrite } from '../../db/statements/provider_write.ts';
import { ApiError, conflict, errorCodes } from '../errors.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Provider } from '../fleet/provider.ts';
import type { ApiRequest } from './endpoint.ts';
import type { Parts } from './parts.ts';
import { findProvider } from './provider.ts';

/** What a request for a change comes to; without a write where everything is as it is to be. */
export type Plan = { readonly write: ProviderWrite | undefined };

/**
 * Judges a request by the fleet as it is known, and writes what it comes to, guarded by what it was judged by. Where it is
 * refused, needs no write, or loses its guard, it is judged again by a fresh fleet; and by that alone where If-Match asks for a
 * content, since no guard proves the names of what is taken away.
 *
 * @param judge throws ApiError where the request is refused
 * @returns what was done, and the fleet that shows it; undefined where somebody else was faster twice.
 */
export async function writeJudged<P extends Plan>(
  { fleet, providerWrites }: Parts,
  request: ApiRequest,
  judge: (fleet: Fleet) => P,
): Promise<{ readonly plan: P; readonly shown: Fleet } | undefined> {
  const plan = request.ifMatch === undefined ? unlessRefused(() => judge(fleet.known)) : undefined;
  if (plan?.write !== undefined) {
    const shown = await providerWrites.perform(plan.write);
    if (shown !== undefined) return { plan, shown };
  }
  const current = await fleet.fresh();
  const again = judge(current);
  const shown = again.write === undefined ? current : await providerWrites.perform(again.write);
  return shown && { plan: again, shown };
}

/** The body of a request about a provider; that there is no such provider is told before what is wrong with it. */
export async function providerBody<Schema extends v.GenericSchema>(
  { fleet }: Parts,
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

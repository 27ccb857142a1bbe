import type { Reply } from './history.ts';
import type { State } from './state.ts';
import type { EffectTime } from './terms.ts';

/** A request to the service, and what its answers mean. */
export type Action = {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly path: string;
  /** The microversion, such as 1039 for 1.39. */
  readonly microversion: number;
  readonly body?: unknown;
  readonly ifMatch?: string | undefined;
  /**
   * The states after this request, if it was answered so in this state; none if this answer is wrong in this state.
   * Without an answer: the states after a success.
   *
   * @param effectTime when it had its effect
   */
  after(state: State, reply: Reply | undefined, effectTime: EffectTime): readonly State[];
};

/** The title of an error, and its code. */
export const errorOf = ({ body }: Reply): { readonly detail: string; readonly code: string } => {
  const [error] =
    (body as { readonly errors?: readonly { readonly detail?: string; readonly code?: string }[] })?.errors ?? [];
  return { detail: error?.detail ?? '', code: error?.code ?? '' };
};

/**
 * Whether a 409 says that the request lost a race for a guard. It may always say so, and nothing was done.
 */
export const isLostRace = (reply: Reply): boolean =>
  reply.status === 409 && errorOf(reply).detail.includes('concurrently updated');

/** Whether a 409 says that a generation of the request is outdated. */
export const isOldGeneration = (reply: Reply): boolean =>
  reply.status === 409 && /generation conflict|generation already changed/.test(errorOf(reply).detail);

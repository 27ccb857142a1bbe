import { allOptional } from './filters.ts';
import { versionNumber } from './microversions.ts';
import { type Ask, type CallOptions, listed, pathOf } from './operation.ts';
import { allPages, type Page } from './pages.ts';

/** A claim that waits. */
export type WaitingClaim = {
  /** Numbers of one line are in the order in which its claims came. */
  readonly number: number;
  /** The UUIDs of its consumers. */
  readonly consumers: readonly string[];
  /** The name of each, or null. From 2.9. */
  readonly names?: readonly (string | null)[];
  /** That of the first consumer, as the user. */
  readonly project_id: string;
  readonly user_id: string;
  readonly since: string;
  /** When it is refused, if it was not placed before. */
  readonly until: string;
  /** Null for a claim that waits in no line. */
  readonly line: string | null;
  /** From 1 on: in its line, or without one among the claims of the process of the service. */
  readonly place: number;
  /** Room for it, less use of a limit of its project, or the claims before it in its line. */
  readonly waits_for: 'room' | 'limit' | 'line';
  /** The unmet condition, as a text. */
  readonly condition: string;
};

/** Which waiting claims are listed. */
export type WaitingFilter = {
  /** Claims with a consumer of this project. */
  readonly project_id?: string | undefined;
  readonly line?: string | undefined;
};

/** Claims that wait; from 2.8. `allocations.place` creates them by `waitMs`. */
export type WaitingCalls = {
  /** All waiting claims, page by page, as they were at most 1 s ago. */
  list(query?: WaitingFilter, options?: CallOptions): AsyncGenerator<WaitingClaim, void>;
  /** One page: at most `limit` claims (default 1000), after the one whose number is `marker`. */
  page(query?: WaitingFilter & Page, options?: CallOptions): Promise<readonly WaitingClaim[]>;
  /** Ends the wait of the claim of a consumer: its client gets a refusal. @throws ApiError 404 if none waits */
  remove(consumer: string, options?: CallOptions): Promise<void>;
};

/** The version that introduced claims that wait. */
export const waitingSince = versionNumber('2.8');
const root = pathOf('waiting');

/** Makes the calls about claims that wait. */
export function waitingCalls(ask: Ask): WaitingCalls {
  const page: WaitingCalls['page'] = async ({ project_id, line, limit, marker } = {}, options) => {
    const query = allOptional({ project_id, line, limit, marker });
    return listed(ask, 'waiting', { since: waitingSince, query }, options);
  };
  return {
    page,
    list: (query = {}, options) => allPages((more) => page({ ...query, ...more }, options)),
    remove: (consumer, options) =>
      ask({ method: 'DELETE', path: root + pathOf(consumer), since: waitingSince }, options),
  };
}

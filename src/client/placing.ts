import { type CandidateQuery, candidateParameters } from './candidates.ts';
import { type AnyClaim, type Mappings, namesSince } from './claim.ts';
import type { Resources } from './filters.ts';
import { queryText } from './operation.ts';

/** A query without a limit, because all trees are searched. */
export type UnlimitedQuery = Omit<CandidateQuery, 'limit'>;

/** A query, or the text of one as `GET /allocation_candidates` has it behind its `?`. */
export type PlacementQuery = UnlimitedQuery | string;

/** A consumer whose place the server finds. */
export type Placing = {
  /** The query; or up to 8, of which the first one that fits counts. */
  readonly candidates: PlacementQuery | readonly PlacementQuery[];
  readonly project_id: string;
  readonly user_id: string;
  /** The consumer's generation as it was read; null for a new consumer. */
  readonly consumer_generation: number | null;
  /** The kind of consumer, such as `INSTANCE`. */
  readonly consumer_type: string;
  /**
   * After this number of seconds the consumer is removed with its allocations, unless its term is renewed. From 2.6.
   */
  readonly expires_in?: number | undefined;
  /** The name that people see: 1 to 255 characters. Null removes the name; without this field it stays. From 2.9. */
  readonly name?: string | null | undefined;
};

/** By UUID, the names of providers, and the UUIDs of the roots of their trees. */
export type NamesOfProviders = { readonly [provider: string]: { readonly name: string; readonly root: string } };

/** What a consumer has after a claim by query. Of one that has nothing any more `allocations` is empty and the rest is missing. */
export type Placed = {
  readonly allocations: {
    readonly [provider: string]: { readonly resources: Resources; readonly generation: number };
  };
  readonly project_id?: string;
  readonly user_id?: string;
  readonly consumer_generation?: number;
  readonly consumer_type?: string;
  readonly etag?: string;
  /** Which providers serve which group. Only for consumers by query. */
  readonly mappings?: Mappings;
  /** When its term expires; null for a consumer without a term. From 2.6. */
  readonly expires_at?: string | null;
  /** Null for a consumer without a name. From 2.9. */
  readonly name?: string | null;
  /** By UUID, the names of the providers, and the UUIDs of the roots of their trees. From 2.7. */
  readonly resource_providers?: NamesOfProviders;
};

/** What a consumer has after its place was found. */
export type PlacedByQuery = Required<Omit<Placed, 'expires_at' | 'name' | 'resource_providers'>> &
  Pick<Placed, 'expires_at' | 'name' | 'resource_providers'>;

/** The body of a claim by query, in the form of a version. */
export const placingBody = ({ candidates, name, ...owner }: Placing, version: number): object => ({
  ...owner,
  ...(version >= namesSince && name !== undefined ? { name } : {}),
  candidates: isList(candidates) ? candidates.map(textOf) : textOf(candidates),
});

const textOf = (query: PlacementQuery): string =>
  typeof query === 'string' ? query : queryText(candidateParameters(query));

const isList = (candidates: Placing['candidates']): candidates is readonly PlacementQuery[] =>
  Array.isArray(candidates);

/** Whether a consumer is placed by a query. */
export const isPlacing = (claim: Placing | AnyClaim): claim is Placing => 'candidates' in claim;

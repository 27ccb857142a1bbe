import type { NamedProvider } from './candidate_questions.ts';
import { namesSince } from './claim.ts';
import type { ConsumerOwner } from './consumers.ts';
import { allOptional, optional } from './filters.ts';
import type { HoldingQuery } from './holdings.ts';
import { type Ask, type CallOptions, listed, pathOf } from './operation.ts';

/** A time for which a consumer held an amount of a class of a provider. */
export type UsageRecord = ConsumerOwner & {
  /** The UUID of the consumer. */
  readonly consumer: string;
  /** Null for a consumer without a name. */
  readonly name: string | null;
  /** As it was called in the end. */
  readonly resource_provider: NamedProvider;
  readonly resource_class: string;
  readonly amount: number;
  readonly from: string;
  /** Null for an open record. */
  readonly until: string | null;
  /**
   * Why it ended: `rewritten` to another amount at the same provider, `moved` to another provider, `owner` for a change of project, user or
   * type. Null for an open record, and where the history was switched off.
   */
  readonly ended: 'released' | 'rewritten' | 'moved' | 'term' | 'owner' | null;
};

/** Which records count. All these conditions must hold. */
export type UsageRecordQuery = Omit<HoldingQuery, 'name_contains'> & {
  /** The UUID of a consumer, which need not exist any more. */
  readonly consumer?: string | undefined;
  /** The name of consumers: of an open record the present one, of a closed one that of its end. */
  readonly name?: string | undefined;
  /** Records of allocations that existed between these times, such as `2026-11-01T00:00:00Z`. */
  readonly from?: Date | string | undefined;
  readonly until?: Date | string | undefined;
};

/** The keys by which records are summed. */
export type UsageTotalKey =
  | 'project_id'
  | 'user_id'
  | 'consumer_type'
  | 'resource_provider'
  | 'resource_class'
  | 'month'
  | 'day';

/** A sum of amounts, each times the hours for which it was held, and what it is of. */
export type UsageTotal = {
  readonly project_id?: string;
  readonly user_id?: string;
  readonly consumer_type?: string;
  readonly resource_provider?: NamedProvider;
  readonly resource_class?: string;
  /** Such as `2026-11`, in UTC. */
  readonly month?: string;
  /** Such as `2026-11-24`, in UTC. */
  readonly day?: string;
  readonly amount_hours: number;
};

/** The history of usages, if the service keeps one; from 2.9. */
export type UsageRecordCalls = {
  /**
   * All records, page by page: open records, and then closed ones, in the order of their ends. A record that ends meanwhile may come
   * twice, the second time with its end.
   */
  list(
    query?: UsageRecordQuery & { readonly open?: boolean | undefined },
    options?: CallOptions,
  ): AsyncGenerator<UsageRecord, void>;
  /** Sums over all records, each for the part of it that is between `from` and `until`. One moment. */
  totals(by: readonly UsageTotalKey[], query?: UsageRecordQuery, options?: CallOptions): Promise<readonly UsageTotal[]>;
};

type RecordPage = {
  readonly usage_records: readonly UsageRecord[];
  readonly usage_records_links?: readonly { readonly href: string }[];
};

const parametersOf = ({ from, until, ...others }: UsageRecordQuery) => {
  const { consumer, name, project_id, user_id, consumer_type, resource_provider, in_tree, resource_class } = others;
  const named = { consumer, name, project_id, user_id, consumer_type, resource_provider, in_tree, resource_class };
  const times = { from: timeText(from), until: timeText(until) };
  return allOptional({ ...named, ...times });
};

async function* allRecords(
  ask: Ask,
  { open, ...query }: UsageRecordQuery & { readonly open?: boolean | undefined },
  options: CallOptions | undefined,
): AsyncGenerator<UsageRecord, void> {
  const asked = [...parametersOf(query), ...allOptional({ open: open?.toString(), limit: 1000 })];
  for (let marker: string | undefined; ; ) {
    const parameters = [...asked, ...optional('marker', marker)];
    const operation = { method: 'GET', path: pathOf('usage_records'), since: namesSince, query: parameters } as const;
    const page = await ask<RecordPage>(operation, options);
    yield* page.usage_records;
    const [next] = page.usage_records_links ?? [];
    if (next === undefined) return;
    marker = new URL(next.href, 'http://service').searchParams.get('marker') ?? undefined;
  }
}

/** Makes the calls about the history of usages. */
export function usageRecordCalls(ask: Ask): UsageRecordCalls {
  return {
    list: (query = {}, options) => allRecords(ask, query, options),
    totals: async (by, query = {}, options) => {
      const parameters = [...optional('by', by.join()), ...parametersOf(query)];
      return listed(ask, 'usage_totals', { since: namesSince, query: parameters }, options);
    },
  };
}

const timeText = (time: Date | string | undefined): string | undefined =>
  time instanceof Date ? time.toISOString() : time;

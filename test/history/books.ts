import assert from 'node:assert/strict';
import { sql } from 'kysely';
import { recordsOf, run, type World } from './world.ts';

/** A time that is known to be between two readings of the clock. */
type Span = { readonly from: number; readonly to: number };

type Held = {
  readonly consumer: string;
  readonly provider: string;
  readonly className: string;
  readonly owner: string;
  readonly amount: number;
};

type Entry = Held & { readonly began: Span; readonly until: Span | undefined; readonly ended: string | null };

const keyOf = ({ consumer, provider, className, owner }: Held): string =>
  JSON.stringify([consumer, provider, className, owner]);

/** What is held now, and the time. */
const held = sql<{ readonly now: number; readonly held: readonly Held[] | null }>`
  select (extract(epoch from clock_timestamp()) * 1000000)::float8 as now, (
    select json_agg(h) from (
      select consumer_id as consumer, p.uuid as provider, r.name as "className", coalesce(j.external_id || '/' || u.external_id || '/'
        || coalesce(t.name, ''), '') as owner, sum(used)::float8 as amount
      from allocations a join resource_providers p on p.id = resource_provider_id join resource_classes r on r.id = resource_class_id
      left join consumers c on c.uuid = consumer_id left join projects j on j.id = project_id left join users u on u.id = user_id
      left join consumer_types t on t.id = consumer_type_id group by 1, 2, 3, 4
    ) as h
  ) as held`;

/**
 * A second bookkeeping, without triggers: it reads what is held before and after each step, and knows nothing of what happens between. So it
 * can only follow one writer.
 */
export class Books {
  readonly #world: World;
  #at: number;
  #open = new Map<string, Entry>();
  readonly #ended: Entry[] = [];

  private constructor(world: World, at: number) {
    this.#world = world;
    this.#at = at;
  }

  static async open(world: World): Promise<Books> {
    const [row] = await run(world, held);
    return new Books(world, row?.now ?? 0);
  }

  async #look(): Promise<{ readonly span: Span; readonly now: ReadonlyMap<string, Held> }> {
    const [row] = await run(this.#world, held);
    const span = { from: this.#at, to: row?.now ?? 0 };
    this.#at = span.to;
    return { span, now: new Map((row?.held ?? []).map((each) => [keyOf(each), each])) };
  }

  /** The history was switched off, if it was on, and on again. */
  async switched(): Promise<void> {
    const { span, now } = await this.#look();
    for (const entry of this.#open.values()) this.#ended.push({ ...entry, until: span, ended: null });
    this.#open = new Map(
      Array.from(now, ([key, each]) => [key, { ...each, began: span, until: undefined, ended: null }]),
    );
  }

  /** A step was made. @param name what it was */
  async stepped(name: string): Promise<void> {
    const { span, now } = await this.#look();
    const gone = [...this.#open].filter(([key, { amount }]) => now.get(key)?.amount !== amount);
    for (const [key] of gone) this.#open.delete(key);
    const begun = [...now].filter(([key]) => !this.#open.has(key));
    for (const [key, each] of begun) this.#open.set(key, { ...each, began: span, until: undefined, ended: null });
    for (const [, entry] of gone) {
      const next = begun.map(([, each]) => each).filter(({ consumer }) => consumer === entry.consumer);
      const sameClass = next.filter(({ className }) => className === entry.className);
      const end = name === 'term' ? 'term' : 'released';
      const ended = next.some(({ owner }) => owner !== entry.owner)
        ? 'owner'
        : sameClass.some(({ provider }) => provider === entry.provider)
          ? 'rewritten'
          : sameClass.length > 0
            ? 'moved'
            : end;
      this.#ended.push({ ...entry, until: span, ended });
    }
  }

  /** Compares the records with what the books have, and their sums by owner. */
  async compare(): Promise<void> {
    const records = await recordsOf(this.#world);
    const books = [...this.#ended, ...this.#open.values()];
    const inOrder = <Row extends Held>(rows: readonly Row[], began: (row: Row) => number): readonly Row[] =>
      rows.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : began(a) - began(b)));
    const [found, expected] = [inOrder(records, ({ began }) => began), inOrder(books, ({ began }) => began.from)];
    const lineOf = (row: Held & { readonly ended: string | null }, isOpen: boolean) =>
      `${keyOf(row)}: ${row.amount}, ${isOpen ? 'open' : row.ended}`;
    assert.deepEqual(
      found.map((row) => lineOf(row, row.until === null)),
      expected.map((row) => lineOf(row, row.until === undefined)),
    );
    const isIn = (time: number, { from, to }: Span) => time >= from && time <= to;
    for (const [index, { began, until, ...more }] of found.entries()) {
      const entry = expected[index];
      assert.ok(entry && isIn(began, entry.began), `when it began: ${JSON.stringify(more)}`);
      assert.ok(until === null || (entry.until && isIn(until, entry.until)), `when it ended: ${JSON.stringify(more)}`);
    }
    const sumOf = (owner: string) =>
      found.reduce(
        (sum, { owner: other, amount, began, until }) =>
          other === owner && until !== null ? sum + amount * (until - began) : sum,
        0,
      );
    for (const owner of new Set(found.map(({ owner }) => owner))) {
      const ended = this.#ended.filter((entry) => entry.owner === owner);
      const least = ended.reduce((sum, { amount, began, until }) => sum + amount * ((until?.from ?? 0) - began.to), 0);
      const most = ended.reduce((sum, { amount, began, until }) => sum + amount * ((until?.to ?? 0) - began.from), 0);
      assert.ok(isIn(sumOf(owner), { from: least, to: most }), `what ${owner} used`);
    }
  }
}

/** More terms end together than one transaction removes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { removeEndedConsumers } from '../../src/claims/deletions.ts';
import { type TwoConnections, withTwoConnections } from '../races/two_connections.ts';
import { until } from '../support/until.ts';

/** Consumers whose terms have ended, a millisecond apart, the first one first. */
const ended = (count: number) => `
  with made as (
    insert into consumers (id, uuid, project_id, user_id, generation)
    select n, gen_random_uuid(), 1, 1, 1 from generate_series(1, ${count}) as n returning id
  )
  insert into consumer_terms (consumer_id, generation, expires_at)
  select id, 1, now() - interval '1 hour' + id * interval '1 ms' from made`;

const countLeft = async ({ other }: TwoConnections): Promise<number> => {
  const { rows } = await other.query('select count(*)::integer as count from consumers');
  return rows[0].count;
};

/** How many consumers a transaction has removed, and after how many searches for ended terms. */
type Removed = { readonly count: number; readonly searches: number };

/** Removes consumers while `use` runs, and notes each transaction. @param onRemoved called after each of them */
async function whileRemoving(
  { database }: TwoConnections,
  use: (removed: readonly Removed[]) => Promise<void>,
  onRemoved: (stop: () => Promise<void>) => void = () => {},
): Promise<void> {
  let searches = 0;
  const removed: Removed[] = [];
  const stop = removeEndedConsumers(database, {
    logger: pino({ level: 'silent' }),
    outages: {
      answered: () => {
        searches += 1;
      },
      notice: () => false,
    },
    onRemoved: (count) => {
      removed.push({ count, searches });
      onRemoved(stop);
    },
  });
  try {
    await use(removed);
  } finally {
    await stop();
  }
}

const sumOf = (removed: readonly Removed[]): number => removed.reduce((sum, { count }) => sum + count, 0);

test('all consumers whose terms have expired are removed by one search, in several transactions', () =>
  withTwoConnections(async (connections) => {
    await connections.other.query(ended(600));
    await whileRemoving(connections, async (removed) => {
      await until('all are removed', () => sumOf(removed) === 600);
      assert.deepEqual(
        removed,
        [256, 256, 88].map((count) => ({ count, searches: 1 })),
      );
    });
    assert.equal(await countLeft(connections), 0);
  }));

test('a process that ends removes no consumers after the transaction that is under way', () =>
  withTwoConnections(async (connections) => {
    await connections.other.query(ended(300));
    let stopped: Promise<void> | undefined;
    await whileRemoving(
      connections,
      async () => {
        await until('the removal is stopped', () => stopped !== undefined);
        await stopped;
      },
      (stop) => {
        stopped = stop();
      },
    );
    assert.equal(await countLeft(connections), 300 - 256);
  }));

test('consumers that another program has locked do not delay the removal of consumers whose terms expired later', () =>
  withTwoConnections(async (connections) => {
    const { other } = connections;
    await other.query(ended(600));
    await other.query('begin');
    await other.query('select from consumers where id <= 300 for update');
    await whileRemoving(connections, async (removed) => {
      await until('the later ones are removed', () => sumOf(removed) === 300);
      assert.equal(await countLeft(connections), 300);
      await other.query('commit');
      await until('the others are removed', () => sumOf(removed) === 600);
    });
    assert.equal(await countLeft(connections), 0);
  }));

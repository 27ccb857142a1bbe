import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

/** A statement of a transaction, as a client sends it. */
export type Statement = string | { readonly text: string; readonly values: unknown[] };

/** The connections of two programs, and of one that watches them. */
export type Programs = { readonly programs: readonly [Program, Program]; readonly observer: pg.Client };

type Program = { readonly client: pg.Client; readonly pid: number };

/** How two transactions ran. */
export type Interleaving = {
  /** Their statements in the order in which they were sent, such as `A1 B1 Ac Bc`; c is the commit. */
  readonly order: string;
  /** The codes of errors that ended a transaction. */
  readonly errors: readonly string[];
  /** Which of the two went on, each time when both could. */
  readonly choices: readonly number[];
};

/** Calls back with the connections, which are closed in the end. */
export async function withPrograms(
  connectionString: string,
  use: (programs: Programs) => Promise<void>,
): Promise<void> {
  const [one, other, observer] = [0, 1, 2].map(() => new pg.Client({ connectionString })) as [
    pg.Client,
    pg.Client,
    pg.Client,
  ]; // three
  try {
    await observer.connect();
    await use({ programs: [await connected(one), await connected(other)], observer });
  } finally {
    await Promise.all([one, other, observer].map((client) => client.end()));
  }
}

async function connected(client: pg.Client): Promise<Program> {
  await client.connect();
  await client.query(`set deadlock_timeout = '10ms'`);
  const { rows } = await client.query('select pg_backend_pid() as pid');
  return { client, pid: rows[0].pid };
}

/**
 * Runs two transactions once for each order of their statements. A statement that waits for a lock of the other transaction lets that one
 * go on, so there are no orders that the locks forbid.
 *
 * @param before what each run begins with
 */
export async function interleave(
  programs: Programs,
  transactions: readonly [readonly Statement[], readonly Statement[]],
  before: () => Promise<unknown>,
  after: (run: Interleaving) => Promise<void>,
): Promise<void> {
  let choices: readonly number[] | undefined = [];
  while (choices !== undefined) {
    await before();
    const run = await runOnce(programs, transactions, choices);
    await after(run);
    const last: number = run.choices.lastIndexOf(0);
    choices = last === -1 ? undefined : [...run.choices.slice(0, last), 1];
  }
}

type Side = Program & {
  readonly name: string;
  readonly left: Statement[];
  sent: number;
  busy: Promise<void> | undefined;
};

async function runOnce(
  { programs, observer }: Programs,
  transactions: readonly [readonly Statement[], readonly Statement[]],
  choices: readonly number[],
): Promise<Interleaving> {
  const [order, errors, made]: [string[], string[], number[]] = [[], [], []];
  const sides = programs.map(
    (program, index): Side => ({
      ...program,
      name: index === 0 ? 'A' : 'B',
      left: [...(transactions[index] ?? []), 'commit'],
      sent: 0,
      busy: undefined,
    }),
  );
  const send = async (side: Side, statement: Statement): Promise<void> => {
    try {
      if (side.sent === 1) await side.client.query('begin isolation level read committed');
      await side.client.query(statement);
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) throw error;
      errors.push(error.code ?? error.message);
      side.left.length = 0;
      await side.client.query('rollback');
    }
    side.busy = undefined;
  };
  for (;;) {
    const able = sides.filter(({ busy, left }) => busy === undefined && left.length > 0);
    if (able.length === 0) break;
    const choice = able.length === 1 ? 0 : (choices[made.length] ?? 0);
    if (able.length > 1) made.push(choice);
    const side = able[choice];
    const statement = side?.left.shift();
    if (side === undefined || statement === undefined) throw new Error('There is no such statement.');
    side.sent += 1;
    order.push(`${side.name}${side.left.length === 0 ? 'c' : side.sent}`);
    side.busy = send(side, statement);
    await untilCalm(sides, observer);
  }
  return { order: order.join(' '), errors, choices: made };
}

/** Waits until no statement is under way, or one that waits for a lock of the other transaction. */
async function untilCalm(sides: readonly Side[], observer: pg.Client): Promise<void> {
  const pids = sides.map(({ pid }) => pid);
  for (;;) {
    const busy = sides.flatMap((side) => side.busy ?? []);
    await Promise.race([...busy, sleep(2)]);
    const [waiting, ...others] = sides.filter((side) => side.busy !== undefined);
    if (waiting === undefined) return;
    const { rows } = await observer.query('select pg_blocking_pids($1) && $2::integer[] as "isBlocked"', [
      waiting.pid,
      pids,
    ]);
    if (rows[0].isBlocked && others.length === 0 && waiting.busy !== undefined) return;
  }
}

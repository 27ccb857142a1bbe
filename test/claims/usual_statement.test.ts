/**
 * db/statements/claims/usual_statement.sql is the statement that writes claims of new consumers, for people who read it. After a change
 * of the statement, write the file again: WRITE_STATEMENT=1 npm test -- test/claims/usual_statement
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
} from 'kysely';
import type { Database } from '../../db/engine/connect.ts';
import { briefWait } from '../../db/engine/slow_lane.ts';
import type { ClaimWrite } from '../../db/statements/claims/claim_write.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import { locationPattern } from '../statements/recorded.ts';

const file = path.join(import.meta.dirname, '../../db/statements/claims/usual_statement.sql');

const claim: ClaimWrite = {
  providers: [{ providerId: 1, generation: 2, bump: 1 }],
  consumers: [
    {
      uuid: '6f0c9f9e-6c9c-4c39-9d8a-000000000001',
      generation: null,
      hasOldAllocations: false,
      projectExternalId: 'web',
      userExternalId: 'ada',
      consumerType: 'INSTANCE',
      allocations: [{ providerId: 1, classId: 0, used: 4 }],
      etag: 'W/"tag"',
    },
  ],
  inventories: [],
};

/** The statements that the claims are written by; nothing is written. */
async function statementsOf(claims: readonly ClaimWrite[]): Promise<readonly CompiledQuery[]> {
  const kysely = new Kysely({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });
  let compiled: readonly CompiledQuery[] = [];
  const transaction = async (statements: readonly RawBuilder<unknown>[]) => {
    compiled = statements.map((statement) => statement.compile(kysely));
    return statements.map(() => []);
  };
  // The rows of no statement are read: each list is empty, whatever its type.
  const database = { transaction } as Pick<Database, 'transaction'>;
  const judgedOn = { pgSnapshot: '700:700:', lastXid: '699', serverRun: '0' };
  await writeClaims(database, claims, { wait: briefWait, judgedOn });
  return compiled;
}

/** Without the comments that tests add, without empty lines, and with the indentation of the template. */
const readable = (text: string): string =>
  text
    .replaceAll(locationPattern, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => line.replace(/^ {4}/, '').trimEnd())
    .join('\n')
    .trim();

test('usual_statement.sql is the statement that writes claims of new consumers', async () => {
  const [statement, ...more] = await statementsOf([claim, claim]);
  assert.deepEqual(more, []);
  const text = `-- How claims of new consumers are written: made from write_claims.ts by test/claims/usual_statement.test.ts.

${readable(statement?.sql ?? '')};
`;
  if (process.env.WRITE_STATEMENT !== undefined) await writeFile(file, text);
  assert.equal(await readFile(file, 'utf8'), text, 'write it again: see the beginning of this test file');
});

import assert from 'node:assert/strict';
import type { Database } from '../../db/engine/connect.ts';
import { readFleetSnapshot } from '../../db/fleet/change_log.ts';
import type { ClaimWrite } from '../../db/statements/claims/claim_write.ts';
import { deleteAllocations } from '../../db/statements/claims/delete_allocations.ts';
import type { ProjectUsage } from '../../db/statements/claims/project_usages.ts';
import { writeClaims } from '../../db/statements/claims/write_claims.ts';
import { updateConsumer } from '../../db/statements/consumers/consumer_write.ts';
import { firstPosition, removeEnded } from '../../db/statements/consumers/remove_ended.ts';
import { setTerm } from '../../db/statements/consumers/set_term.ts';
import { type NewLimits, writeLimits } from '../../db/statements/limits.ts';
import { deleteProvider } from '../../db/statements/providers/delete_provider.ts';
import { type ProviderWrite, writeProviders } from '../../db/statements/providers/provider_write.ts';
import { moveProvider, renameProvider } from '../../db/statements/providers/update_provider.ts';
import { aggregatesTag, inventoriesTag, inventoryTag, providerTag, traitsTag } from '../../src/placement/entity_tag.ts';
import type { Statement } from '../races/interleavings.ts';
import type { Transactions } from './meeting.ts';

/* What the service sends, on the scene of meeting.ts. */

const claim = (uuid: string, generation: number | null, usages: readonly ProjectUsage[]): ClaimWrite => ({
  providers: [{ providerId: 2, generation: 5, bump: 1 }],
  consumers: [
    {
      uuid,
      generation,
      hasOldAllocations: false,
      projectExternalId: 'p1',
      userExternalId: 'u1',
      consumerType: null,
      etag: null,
      allocations: [{ providerId: 2, classId: 0, used: 2 }],
    },
  ],
  inventories: [],
  counted: { usages, limits: [] },
});
const usage = (classId: number | null, amount: number): ProjectUsage => ({
  project: 'p1',
  consumerType: null,
  classId,
  amount,
});

/** The statements that the service sends in its first transaction, or in the first one with a statement that matches. */
export async function sentBy(
  database: Database,
  write: (recording: Database) => Promise<unknown>,
  matching = /./,
): Promise<readonly Statement[]> {
  const sent: Statement[] = [];
  const enough = new Error('The transaction is recorded.');
  const record: Database['transaction'] = async (statements, wait) => {
    const compiled = statements.map((statement) => statement.compile(database.kysely));
    if (!compiled.some(({ sql }) => matching.test(sql))) return database.transaction(statements, wait);
    if (sent.length === 0)
      sent.push(...compiled.map(({ sql, parameters }) => ({ text: sql, values: [...parameters] })));
    throw enough;
  };
  await assert.rejects(write({ ...database, transaction: record, write: record }), enough);
  return sent;
}

const limitsOf = (project: string, known: number | null): NewLimits => ({
  project,
  resources: { CUSTOM_OLD: 5 },
  consumers: {},
  known,
});

/** What stores limits of a class, each of which meets another name of the class. */
export const limiting = async (database: Database): Promise<Transactions> => ({
  'first limits': await sentBy(database, (recording) => writeLimits(recording, limitsOf('p3', null))),
  'a limit of one more class': await sentBy(database, (recording) => writeLimits(recording, limitsOf('p1', 1))),
  'another limit of the class': await sentBy(database, (recording) => writeLimits(recording, limitsOf('p2', 1))),
});
/** Another name of that class. */
export const otherClassName = [`update resource_classes set name = 'CUSTOM_NEW' where id = 10000`];

/** What the service sends for consumers, by what it does. */
export const byService = async (database: Database): Promise<Transactions> => ({
  'a claim': await sentBy(database, (recording) =>
    writeClaims(recording, [claim('c1', 1, [usage(0, 1), usage(1, -2)])]),
  ),
  'a new claim': await sentBy(database, (recording) =>
    writeClaims(recording, [claim('c5', null, [usage(0, 2), usage(null, 1)])]),
  ),
  'a release': await sentBy(database, (recording) => deleteAllocations(recording, ['c1'], undefined, () => {}, true)),
  'another owner': await sentBy(database, async (recording) => {
    const usages = [usage(0, -1), usage(1, -2), usage(null, -1)];
    const moved = [...usages, ...usages.map((each) => ({ ...each, project: 'p2', amount: -each.amount }))];
    await updateConsumer(
      recording,
      { uuid: 'c1', id: 1, generation: 1, allocations: undefined },
      { projectId: 'p2', userId: 'u1', consumerType: null, name: 'eins' },
      {
        judgedOn: await readFleetSnapshot(database.kysely),
        counted: { usages: moved, limits: [] },
        uncountedTypes: [],
      },
    );
  }),
  'another term': await sentBy(database, (recording) =>
    setTerm(recording, { uuid: 'c1', id: 1, generation: 1, allocations: undefined }, 60),
  ),
  'the end of a term': await sentBy(database, (recording) => removeEnded(recording, firstPosition, 10, true)),
});

/** What the service sends for the second provider, by what it writes. */
export async function byServiceOfProvider(database: Database): Promise<Transactions> {
  const judgedOn = await readFleetSnapshot(database.kysely);
  const judged = { providerId: 2, uuid: 'r2', generation: 5, judgedOn };
  const row = { id: 2, uuid: 'r2', serverRun: judgedOn.serverRun, seen: { name: 'r2', parentUuid: null } };
  const fields = { total: 40, reserved: 0, minUnit: 1, maxUnit: 40, stepSize: 1, allocationRatio: 1 };
  const [a, b] = [
    { id: 100_001, name: 'CUSTOM_A' },
    { id: 100_002, name: 'CUSTOM_B' },
  ] as const;
  const sent = (write: ProviderWrite) => sentBy(database, (recording) => writeProviders(recording, [write]));
  const aggregates = {
    ...judged,
    uuids: ['a2', 'a4'],
    tag: aggregatesTag(['a2', 'a4']),
    tagBefore: aggregatesTag(['a1']),
  };
  const tags = { provider: '', inventories: inventoriesTag([]), traits: traitsTag([]), aggregates: aggregatesTag([]) };
  return {
    inventories: await sent({
      kind: 'inventories',
      ...judged,
      put: [{ ...fields, classId: 1, className: 'MEMORY_MB', tag: inventoryTag(fields) }],
      remove: [0],
      present: [{ id: 0, name: 'VCPU' }],
      tag: inventoriesTag([['MEMORY_MB', fields]]),
      tagBefore: inventoriesTag([['VCPU', { ...fields, total: 100, maxUnit: 100 }]]),
    }),
    traits: await sent({
      kind: 'traits',
      ...judged,
      traits: [b],
      present: [a],
      tag: traitsTag(['CUSTOM_B']),
      tagBefore: traitsTag(['CUSTOM_A']),
    }),
    aggregates: await sent({ kind: 'aggregates', ...aggregates, present: ['a1'] }),
    'aggregates at any generation': await sent({ kind: 'last aggregates', ...aggregates }),
    'a child': await sent({
      kind: 'child',
      uuid: 'r4',
      name: 'r4',
      parent: { id: 2, uuid: 'r2' },
      tags: { ...tags, provider: providerTag({ uuid: 'r4', name: 'r4', parentUuid: 'r2' }) },
    }),
    'another name': await sentBy(database, (recording) => renameProvider(recording, row, 'r2 renamed')),
    'another parent': await sentBy(database, (recording) =>
      moveProvider(recording, {
        ...row,
        name: 'r2',
        parentId: 1,
        rootId: 1,
        subtreeIds: [2],
        judged: [
          { id: 1, uuid: 'r1', parentId: null },
          { id: 2, uuid: 'r2', parentId: null },
          { id: 3, uuid: 'r3', parentId: 1 },
        ],
      }),
    ),
    'the deletion': await sentBy(database, (recording) => deleteProvider(recording, row)),
  };
}

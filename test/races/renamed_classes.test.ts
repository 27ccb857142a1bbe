/** A class is renamed by the name in the request, because its id may belong to another class by then. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import type { PlacementService } from '../../src/start/service.ts';
import { anyEngine } from '../support/engines.ts';
import { type Answer, accepted, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { afterRefresh } from './after_refresh.ts';

const id = 10_000;
const classes = '/resource_classes';

/** Renames CUSTOM_OLD to CUSTOM_NEW, while SQL changes the classes. @returns the answer, and the custom classes afterwards */
async function renamed(meanwhile: readonly string[]): Promise<[number, unknown]> {
  return withTestService(anyEngine, {}, async (service: PlacementService) => {
    const { kysely } = service.database;
    const send = requestsTo(service);
    accepted(await send('PUT', `${classes}/CUSTOM_OLD`));
    afterRefresh(service, 1, async () => {
      for (const statement of meanwhile) await sql.raw(statement).execute(kysely);
    });
    const answer: Answer = await send('PUT', `${classes}/CUSTOM_OLD`, { name: 'CUSTOM_NEW' }, 'placement 1.6');
    const { rows } = await sql`select id, name from resource_classes where id >= ${id} order by id`.execute(kysely);
    return [answer.status, rows];
  });
}

const deleted = `delete from resource_classes where id = ${id}`;
const made = (newId: number, name: string) => `insert into resource_classes (id, name) values (${newId}, '${name}')`;

test('another class that got the id of a deleted one keeps its name', async () => {
  const other = { id, name: 'CUSTOM_OTHER' };
  assert.deepEqual(await renamed([deleted, made(id, other.name)]), [404, [other]]);
});

test('a class that was renamed in between keeps its new name', async () => {
  const theirs = `update resource_classes set name = 'CUSTOM_THEIRS' where id = ${id}`;
  assert.deepEqual(await renamed([theirs]), [404, [{ id, name: 'CUSTOM_THEIRS' }]]);
});

test('a class that was deleted and made again with another id is renamed', async () => {
  const [status, found] = await renamed([deleted, made(id, 'CUSTOM_OTHER'), made(id + 1, 'CUSTOM_OLD')]);
  assert.equal(status, 200);
  assert.deepEqual(found, [
    { id, name: 'CUSTOM_OTHER' },
    { id: id + 1, name: 'CUSTOM_NEW' },
  ]);
});

/** Provider writes of one batch take locks in the order of the ids, as claims do, so there is no deadlock. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeProviders } from '../../db/statements/providers/provider_write.ts';
import { newProviderTags } from '../../src/fleet/model/entity_tags.ts';
import { newChild, noTraits, untilWaiting, withTwoConnections } from './two_connections.ts';

/** A new child of provider 2. */
const child = (name: string) => newChild(name, { id: 2, uuid: 'rp2' });

test('the parent of a new provider is locked in the order of the ids', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query('begin; select from resource_providers where id = 1 for no key update');
    const writes = [child('new'), noTraits(1)];
    const written = writeProviders(database, writes);
    written.catch(() => {});
    await untilWaiting(other);
    await other.query('select from resource_providers where id = 2 for no key update');
    await other.query('commit');
    assert.deepEqual([...(await written).keys()], writes);
  });
});

test('two transactions that make children of a provider and then write it do not deadlock', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query(`begin; insert into resource_providers (id, uuid, name, generation, root_provider_id)
      values (9, 'rp9', 'first', 0, 9)`);
    const writes = (name: string) => [child(name), noTraits(2)];
    const [first, second] = [writes('first'), writes('second')];
    const written = [writeProviders(database, first)];
    await untilWaiting(other); // it waits for the name, after the parent was locked
    written.push(writeProviders(database, second));
    for (const each of written) each.catch(() => {});
    await untilWaiting(other, 2);
    await other.query('rollback');
    const done = await Promise.all(written);
    assert.deepEqual(
      done.map((each) => [...each.keys()]),
      [first, second.slice(0, 1)],
    );
  });
});

test('two transactions that make the same providers, with and without parents, do not deadlock', async () => {
  await withTwoConnections(async ({ database, other }) => {
    const insert = (name: string) =>
      other.query('insert into resource_providers (uuid, name, generation) values ($1, $1, 0)', [name]);
    await other.query('begin');
    await insert('child');
    const tags = newProviderTags({ uuid: 'root', name: 'root', parentUuid: null });
    const written = writeProviders(database, [{ kind: 'root', uuid: 'root', name: 'root', tags }, child('child')]);
    written.catch(() => {});
    await untilWaiting(other); // it waits for the name of the child, whatever the order of the writes
    await insert('root');
    await other.query('commit');
    assert.equal((await written).size, 0);
  });
});

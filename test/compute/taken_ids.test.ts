/** Ids of services that another program assigns as well. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { anyEngine } from '../support/engines.ts';
import { accepted, at } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { asNova, services, withRegistry } from './nova.ts';

const register = (host: string) => ({ host, binary: 'nova-compute', cell: 'cell1' });

test('a service is registered although another program inserts its id at the same time', async () => {
  await withTestService(anyEngine, withRegistry, async (service) => {
    const send = asNova(service);
    accepted(await send('POST', services, register('first')));
    // Between the statement that chooses the id and the one that inserts the service.
    for (const statement of [
      'create sequence attempts',
      `create function take_id() returns trigger language plpgsql as $$ begin
        if nextval('attempts') = 1 then
          insert into services (cell_id, id, host, "binary") values (new.id, new.last_service_id, 'other', 'nova-conductor');
        end if;
        return null; end $$`,
      'create trigger take_id after update on cells for each row execute function take_id()',
    ]) {
      await sql.raw(statement).execute(service.database.kysely);
    }
    accepted(await send('POST', services, register('second')));
    const listed = at(accepted(await send('GET', services)).json, 'services') as { readonly host: string }[]; // as Nova lists them
    assert.ok(listed.some(({ host }) => host === 'second'));
  });
});

test('where a cell has no service id left, the answer names the cell, and other cells go on', async () => {
  await withTestService(anyEngine, withRegistry, async (service) => {
    const send = asNova(service);
    accepted(await send('POST', services, register('first')));
    await sql`update services set id = 2147483647`.execute(service.database.kysely);
    const { status, text } = await send('POST', services, register('second'));
    assert.equal(status, 503, text);
    assert.match(text, /no id left for a new row: a service of cell cell1 has the id 2147483647/);
    accepted(await send('POST', services, register('first'))); // its heartbeat
    // The ids of cells have come round as well.
    await sql`select setval(pg_get_serial_sequence('cells', 'id'), 1, false)`.execute(service.database.kysely);
    accepted(await send('POST', services, { ...register('second'), cell: 'cell2' }));
  });
});

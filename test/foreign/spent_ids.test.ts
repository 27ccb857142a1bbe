/**
 * Tables whose ids are used up, for example after years of claims: each claim writes the allocations of its consumer
 * with new ids.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkUpgrade } from '../../src/manage/upgrade_checks.ts';
import { prepareDatabase } from '../../src/start/prepare_database.ts';
import { claimOf, holder, withDeployment } from './deployment.ts';

test('the upgrade check reports a table that runs out of ids, and after its remedy claims work again', async () => {
  await withDeployment(async ({ service: { database }, send, succeed, execute }) => {
    const told = async () =>
      (await checkUpgrade(database, '/no/policy')).filter(({ check }) => check === 'Ids Running Out');
    assert.deepEqual(await told(), []);
    const claim = (generation: number) => ({ ...claimOf(3), consumer_generation: generation });
    await execute("select setval('allocations_id_seq', 2147483646)");
    await succeed('PUT', `/allocations/${holder}`, claim(1));
    assert.equal((await send('PUT', `/allocations/${holder}`, claim(2))).status, 500);

    const [warning, ...others] = await told();
    assert.deepEqual([warning?.result, others], [1, []]);
    assert.match(warning?.details ?? '', /^Table allocations has used its ids up to 2147483647 of 2147483647;/);
    await execute(/alter sequence .*/.exec(warning?.details ?? '')?.[0] ?? '');
    await prepareDatabase(database, { syncOnStartup: false });
    assert.deepEqual(await told(), []);
    for (const generation of [2, 3]) await succeed('PUT', `/allocations/${holder}`, claim(generation));
    await succeed('DELETE', `/allocations/${holder}`);
  });
});

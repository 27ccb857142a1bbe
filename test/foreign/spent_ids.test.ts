/** Tables whose ids are used up, as by years of claims: each writes the allocations of its consumer with new ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prepareDatabase } from '../../src/database/prepare_database.ts';
import { checkUpgrade } from '../../src/manage/upgrade_checks.ts';
import { claimOf, holder, withDeployment } from './deployment.ts';

test('a table that runs out of ids is told by the upgrade check, whose remedy lets claims go on', async () => {
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

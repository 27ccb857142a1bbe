/**
 * Tables whose ids are used up, for example after years of claims: each claim writes the allocations of its consumer
 * with new ids.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkUpgrade } from '../../src/manage/upgrade_checks.ts';
import { prepareDatabase } from '../../src/start/database.ts';
import { engines } from '../support/engines.ts';
import { claimOf, holder, withDeployment } from './deployment.ts';

test('the upgrade check reports a table that runs out of ids, and after its remedy claims work again', async () => {
  await withDeployment(async ({ service: { database }, send, succeed, execute }) => {
    const reported = async () =>
      (await checkUpgrade(database, '/no/policy')).filter(({ check }) => check === 'Ids Running Out');
    assert.deepEqual(await reported(), []);
    const claim = (generation: number) => ({ ...claimOf(3), consumer_generation: generation });
    await execute("select setval('allocations_id_seq', 2147483646)");
    await succeed('PUT', `/allocations/${holder}`, claim(1));
    assert.equal((await send('PUT', `/allocations/${holder}`, claim(2))).status, 503);

    const [warning, ...others] = await reported();
    assert.deepEqual([warning?.result, others], [1, []]);
    assert.match(
      warning?.details ?? '',
      /^Table allocations is running out of ids: .* 100 % .* up to 2147483647 of 2147483647;/,
    );
    await execute(/alter sequence .*/.exec(warning?.details ?? '')?.[0] ?? '');
    await prepareDatabase(database, { syncOnStartup: false });
    assert.deepEqual(await reported(), []);
    for (const generation of [2, 3]) await succeed('PUT', `/allocations/${holder}`, claim(generation));
    await succeed('DELETE', `/allocations/${holder}`);
  });
});

/** Sequences, and how the upgrade check tells of each; undefined: it does not. */
const sequences: readonly (readonly [sequence: string, at: number, reported: RegExp | undefined])[] = [
  ['minvalue 1 maxvalue 2147483647', 1_600_000_000, undefined],
  ['minvalue 1 maxvalue 2147483647', 1_620_000_000, /is running out of ids: it has used 75 %/],
  ['minvalue -2147483648 maxvalue 2147483647', -2_147_483_648, /goes on below zero: it has used 0 %/],
  ['minvalue -2147483648 maxvalue 2147483647', -1, /goes on below zero: it has used 50 %/],
  ['minvalue -2147483648 maxvalue 2147483647', 1, undefined],
  ['minvalue -2147483648 maxvalue 2147483647', 1_080_000_000, /is running out of ids: it has used 75 %/],
  ['increment -1 minvalue -2147483648 maxvalue 0 start 0', -2_000_000_000, /used 93 %.* of -2147483648/],
  ['minvalue 1 maxvalue 1000', 900, /used 90 % of them, up to 900 of 1000/],
  ['as bigint minvalue 1 maxvalue 9223372036854775807', 2_147_483_648, /used 100 %.* cycle restart with -2147483648;$/],
  ['as bigint minvalue 1 maxvalue 9223372036854775807 cycle', 2_000_000_000, /used 93 %/],
  ['minvalue -2147483648 maxvalue 2147483647 cycle', -5, undefined],
  ['minvalue -2147483648 maxvalue 2147483647 cycle', 2_147_483_647, undefined],
];

test('the upgrade check reports sequences near their end or below zero, and its remedy corrects them', async () => {
  await withDeployment(async ({ service: { database }, succeed, execute }) => {
    const reported = async () =>
      (await checkUpgrade(database, '/no/policy')).find(({ check }) => check === 'Ids Running Out')?.details ??
      undefined;
    for (const [index, [sequence, last, expected]] of sequences.entries()) {
      await execute(
        'drop sequence allocations_id_seq cascade',
        'create sequence allocations_id_seq owned by allocations.id',
      );
      await execute("alter table allocations alter id set default nextval('allocations_id_seq')");
      await execute(
        `alter sequence allocations_id_seq ${sequence} restart ${last}`,
        "select nextval('allocations_id_seq')",
      );
      const details = await reported();
      if (expected === undefined) assert.equal(details, undefined, sequence);
      else {
        assert.match(details ?? '', expected, `${sequence} at ${last}`);
        await execute(/alter sequence .*/.exec(details ?? '')?.[0] ?? '');
        assert.equal(await reported(), undefined, sequence);
      }
      await succeed('PUT', `/allocations/${holder}`, { ...claimOf(1), consumer_generation: index + 1 });
    }
  }, 'postgresql');
});

for (const engine of engines) {
  test(`a claim is a 503 that names the sequence which is too long for its column, on ${engine}`, async () => {
    await withDeployment(async ({ send, execute }) => {
      await execute('alter sequence allocations_id_seq as bigint', "select setval('allocations_id_seq', 2147483647)");
      const { status, text } = await send('PUT', `/allocations/${holder}`, { ...claimOf(1), consumer_generation: 1 });
      assert.equal(status, 503, text);
      assert.match(text, /no id left for a new row: sequence allocations_id_seq has passed 2147483647/);
    }, engine);
  });
}

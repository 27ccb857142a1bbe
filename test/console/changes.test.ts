/* The changes as they happen: what was and is, how much of the list is shown, and that it can be held. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { differencesOf } from '../../console/changes/differences.ts';
import { ratesOf } from '../../console/changes/rates.ts';
import { anyEngine } from '../support/engines.ts';
import { newClaim } from '../support/requests.ts';
import { until } from '../support/until.ts';
import { button, checkAccessibility, rows } from './pages.ts';
import { browserForTests, type Served, serve, viewTests } from './serving.ts';

const browserOf = browserForTests();
const node = randomUUID();

let served: Served;
before(async () => {
  served = await serve(anyEngine);
  const { placement } = served;
  await placement.providers.create({ uuid: node, name: 'host1' });
  await placement.inventories.set(node, { inventories: { VCPU: { total: 100 } }, resource_provider_generation: 0 });
  await placement.allocations.set(randomUUID(), claim(92, 'alpha'));
});
after(() => served.close());

const claim = (VCPU: number, project: string) => ({
  ...newClaim({ [node]: { VCPU } }),
  project_id: project,
  user_id: 'ada',
});

const { testView } = viewTests(browserOf, () => served);

testView('changes tell what was and is, also those that came before the view was opened', 'fleet', async (page) => {
  await page.locator('canvas[data-cells="1"]').waitFor();
  await page.locator('.dot.live').waitFor();
  await page.getByText('1 root provider').waitFor();
  const uuid = randomUUID();
  await served.placement.allocations.set(uuid, claim(3, 'alpha'));
  // When the fleet shows the change, it was reported before the view is left.
  await page.getByText('95 of 100').first().waitFor();
  await page.getByRole('link', { name: 'Changes' }).click();
  await rows(page).getByRole('cell', { name: 'VCPU used 92 → 95' }).waitFor();
  await served.placement.allocations.delete(uuid);
  await rows(page).getByRole('cell', { name: 'VCPU used 95 → 92' }).waitFor();
  await page.getByText(/^2 changes in the last minute/).waitFor();
  await checkAccessibility(page, 'changes');
});

testView('a deleted provider keeps its name in the list', 'changes', async (page) => {
  await page.locator('.dot.live').waitFor();
  const { uuid } = await served.placement.providers.create({ name: 'short-lived' });
  await page.getByRole('link', { name: 'short-lived' }).waitFor();
  await served.placement.providers.delete(uuid);
  await rows(page).getByRole('cell', { name: 'deleted' }).waitFor();
  assert.equal(await page.getByRole('link', { name: 'short-lived' }).count(), 2);
});

test('changes are counted by seconds', () => {
  const log = [9_999, 9_000, 8_500, 7_999, 2_000].map((ms) => ({ at: new Date(ms) }));
  assert.deepEqual(ratesOf(log, 3, 9_999), [1, 1, 2]);
});

testView('the list of changes says how much of it is shown, and is held and continued', 'changes', async (page) => {
  await page.locator('.dot.live').waitFor();
  await page.getByText(/^Nothing has changed since \d\d:\d\d:\d\d/).waitFor();
  const made = Array.from({ length: 320 }, () => randomUUID());
  await Promise.all(made.map((uuid) => served.placement.providers.create({ uuid, name: `many-${uuid}` })));
  await page.getByText(/^The newest 300 of 320 changes since \d\d:\d\d:\d\d/).waitFor();
  assert.equal(await rows(page).count(), 300);
  await button(page, 'Show 20 more').press('Enter');
  await rows(page).nth(319).waitFor();
  await page.getByRole('region', { name: 'Table of changes' }).and(page.locator(':focus')).waitFor();
  // What was and is comes also to rows that are held.
  await page.getByRole('cell', { name: '…', exact: true }).first().waitFor({ state: 'detached' });
  const uuid = randomUUID();
  await served.placement.allocations.set(uuid, claim(3, 'alpha'));
  await rows(page).nth(320).waitFor();
  await button(page, 'Pause').click();
  await rows(page).getByRole('cell', { name: 'VCPU used 92 → 95' }).waitFor();
  await served.placement.allocations.delete(uuid);
  await page.getByText(/^\d+ changes in the last minute/).waitFor();
  await button(page, 'Continue').click();
  await rows(page).getByRole('cell', { name: 'VCPU used 95 → 92' }).waitFor();
  await Promise.all(made.map((each) => served.placement.providers.delete(each)));
});

test('differences of a provider name inventories, usages, traits, aggregates, name and parent', () => {
  const inventory = { total: 8, reserved: 0, min_unit: 1, max_unit: 8, step_size: 1, allocation_ratio: 1 };
  const before = {
    uuid: 'a',
    name: 'host',
    generation: 1,
    parent_provider_uuid: null,
    root_provider_uuid: 'a',
    inventories: { VCPU: inventory, DISK_GB: inventory },
    usages: { VCPU: 2 },
    traits: ['HW_A'],
    aggregates: ['one'],
  };
  assert.deepEqual(differencesOf(before, { ...before, generation: 2 }), []);
  const after = {
    ...before,
    name: 'host\u202e',
    parent_provider_uuid: 'b',
    inventories: { VCPU: { ...inventory, allocation_ratio: 4 }, MEMORY_MB: { ...inventory, total: 2048 } },
    usages: { VCPU: 5, MEMORY_MB: 1024 },
    traits: ['HW_B'],
    aggregates: [],
  };
  assert.deepEqual(differencesOf(before, after), [
    'name host → host‹U+202E›',
    'parent none → b',
    'DISK_GB gone',
    'MEMORY_MB new, total 2 GiB',
    'VCPU ratio 1 → 4',
    'MEMORY_MB used 0 MiB → 1 GiB',
    'VCPU used 2 → 5',
    '+ trait HW_B',
    '− trait HW_A',
    '− aggregate one',
  ]);
  // Numbers that look the same in a large unit are shown exactly.
  const [was, is] = [62_810_000, 62_810_001].map((used) => ({ ...before, usages: { MEMORY_MB: used } }));
  assert.ok(was && is);
  assert.deepEqual(differencesOf(was, is), ['MEMORY_MB used 62,810,000 MEMORY_MB → 62,810,001 MEMORY_MB']);
});

testView('steady changes are read in steps, not each as soon as the one before is read', 'fleet', async (page) => {
  await page.getByText(/^\d+ root providers?$/).waitFor();
  await page.locator('.dot.live').waitFor();
  let reads = 0;
  page.on('request', (request) => {
    if (request.url().includes('/provider_summaries?')) reads++;
  });
  const began = performance.now();
  const traits = ['HW_CPU_X86_VMX', 'HW_CPU_X86_AVX2'];
  const { uuid } = await served.placement.providers.create({ name: 'steady' });
  try {
    let writes = 0;
    for (; performance.now() - began < 2_000; writes++) {
      const one = traits.slice(writes % 2, 1 + (writes % 2));
      await served.placement.providerTraits.set(uuid, { traits: one, resource_provider_generation: writes });
    }
    const most = Math.min((performance.now() - began) / 150 + 1, writes / 2);
    assert.ok(reads > 0 && reads <= most, `${reads} reads after ${writes} writes, at most ${most.toFixed(1)}`);
  } finally {
    await served.placement.providers.delete(uuid);
  }
});

testView('a burst of changes is read without pauses', 'fleet', async (page) => {
  await page.getByText(/^\d+ root providers?$/).waitFor();
  await page.locator('.dot.live').waitFor();
  const changes = Array.from({ length: 2_600 }, () => ({ resource_provider: randomUUID(), parts: ['inventories'] }));
  await page.route(
    /\/changes\?/,
    (route) => route.fulfill({ json: { changes, next: new URL(route.request().url()).searchParams.get('since') } }),
    { times: 1 },
  );
  const pauses: number[] = [];
  let ended: number | undefined;
  const isRead = (url: string) => /provider_summaries\?.{4000}/.test(url);
  page.on('request', (request) => {
    if (isRead(request.url()) && ended !== undefined) pauses.push(performance.now() - ended);
  });
  page.on('requestfinished', (request) => {
    if (isRead(request.url())) ended = performance.now();
  });
  // The request that runs is answered, and the next one is the one with the burst.
  const { uuid } = await served.placement.providers.create({ name: 'first' });
  await served.placement.providers.delete(uuid);
  await until('it is read', () => pauses.length >= 4);
  assert.ok(Math.min(...pauses) < 100, `pauses of ${pauses.map(Math.round).join(', ')} ms`);
});

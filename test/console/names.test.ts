/* How things are named and found: the titles of tabs, links, the search, what is forbidden, and lists of aggregates and consumers. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { findAll, uuidBefore } from '../../console/search/find.ts';
import { anyEngine } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { checkAccessibility, openView, withPage } from './pages.ts';
import { browserForTests, type Served, serve, viewTests } from './serving.ts';

const browserOf = browserForTests();
const longName = `long-${'x'.repeat(180)}`;
const hosts = Array.from({ length: 12 }, (_, index) => `rack${index % 2}-host12${String(index).padStart(2, '0')}`);
const uuids = new Map([...hosts, longName].map((name) => [name, randomUUID()]));
const racks = [randomUUID(), randomUUID()];
const [job, node] = [randomUUID(), randomUUID()];
const uuidOf = (name: string | undefined): string => uuids.get(name ?? '') ?? assert.fail(`no host ${name}`);

let served: Served;
before(async () => {
  served = await serve(anyEngine);
  const { placement } = served;
  const inventories = { VCPU: { total: 8 } };
  for (const [name, uuid] of uuids) {
    await placement.providers.create({ uuid, name });
    await placement.inventories.set(uuid, { inventories, resource_provider_generation: 0 });
    const rack = racks[Number(name.charAt(4))];
    if (rack !== undefined)
      await placement.aggregates.set(uuid, { aggregates: [rack], resource_provider_generation: 1 });
    await placement.providers.create({ name: `${name}-numa0`.slice(0, 200), parent_provider_uuid: uuid });
  }
  await placement.providers.create({ uuid: node, name: 'gpu-node', parent_provider_uuid: uuidOf(hosts[0]) });
  await placement.inventories.set(node, { inventories: { PGPU: { total: 8 } }, resource_provider_generation: 0 });
  await placement.allocations.set(job, {
    allocations: { [node]: { resources: { PGPU: 1 } }, [uuidOf(hosts[1])]: { resources: { VCPU: 6 } } },
    project_id: 'vision',
    user_id: 'ada',
    consumer_type: 'JOB',
    consumer_generation: null,
    name: 'train-7',
  });
});
after(() => served.close());
const { testView } = viewTests(browserOf, () => served);

testView('a tab is called by the name of what it shows', `providers/${uuidOf(hosts[0])}`, async (page) => {
  const isTitled = (title: string) => until(`the tab is called ${title}`, async () => (await page.title()) === title);
  await isTitled(`${hosts[0]} · Provider · Placement`);
  await page.getByRole('link', { name: 'Fleet' }).click();
  await isTitled('Fleet · Placement');
  await openView(page, served.url, `consumers/${job}`);
  await isTitled('train-7 · Consumer · Placement');
  await openView(page, served.url, `aggregates/${racks[0]}`);
  await isTitled('rack0 · Aggregates · Placement');
});

testView(
  'the consumers of a host are those of its whole tree, and are links by their names',
  `providers/${uuidOf(hosts[0])}`,
  async (page) => {
    await page.getByRole('link', { name: /^train-7/ }).click();
    await page.waitForURL(`${served.url}/console/consumers/${job}`);
    await page.goBack();
    await page.getByRole('button', { name: 'This provider' }).click();
    await page.getByText('Nothing is allocated here.').waitFor();
    assert.match(page.url(), /in=provider/);
  },
);

test('a search ranks exact names first, and a part of a UUID has a UUID before it', () => {
  const all = ['host-10', 'host-1', 'a-host-1', 'other'].map((name, index) => ({ uuid: `0000000${index}-a`, name }));
  const names = (text: string) => findAll(all, text).map(({ name }) => name);
  assert.deepEqual(names('HOST-1'), ['host-1', 'host-10', 'a-host-1']);
  // What is below another one comes after all that are not.
  const child = { uuid: '1-a', name: 'a-child-of-host-1', parent_provider_uuid: '0-a' };
  assert.deepEqual(
    findAll([child, ...all], 'host-1').map(({ name }) => name),
    ['host-1', 'host-10', 'a-host-1', 'a-child-of-host-1'],
  );
  assert.deepEqual(names('3-a'), ['other']);
  const uuid = randomUUID();
  assert.equal(
    findAll([...all, { uuid, name: 'late' }], ` ${uuid.replaceAll('-', '').toUpperCase()}`)[0]?.name,
    'late',
  );
  assert.deepEqual(names(' '), []);
  assert.equal(uuidBefore('1'), '0fffffff-ffff-ffff-ffff-ffffffffffff');
  assert.equal(uuidBefore('ab12cd34-00'), 'ab12cd33-ffff-ffff-ffff-ffffffffffff');
  assert.equal(uuidBefore('0'), '00000000-0000-0000-0000-000000000000');
  assert.equal(uuidBefore('host'), undefined);
});

testView(
  'the search shows hosts before what is below them, leads to all, and is used by arrow keys',
  'fleet',
  async (page) => {
    await page.locator('.dot.live').waitFor();
    await page.keyboard.press('/');
    await page.locator('dialog.search input:focus').waitFor();
    await page.keyboard.type('host12');
    const links = page.getByRole('dialog').locator('.found a');
    await links.nth(7).waitFor();
    const texts = await links.allInnerTexts();
    assert.equal(texts.length, 8);
    assert.ok(
      texts.every((text) => !text.includes('numa')),
      texts.join(),
    );
    const focused = () => page.evaluate<string>('document.activeElement.textContent');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    assert.match(await focused(), /^rack0-host1202/);
    await page.keyboard.press('ArrowUp');
    assert.match(await focused(), /^rack0-host1200/);
    await checkAccessibility(page, 'the search');
    await page.getByRole('link', { name: 'The first 8 of 24 providers: all' }).click();
    await page.waitForURL(/providers\?name=host12$/);
    await page.getByText('24 providers', { exact: true }).waitFor();
  },
);

testView(
  'the search shows the name of a consumer apart from its UUID, whose order it does not change',
  'fleet',
  async (page) => {
    await page.locator('.dot.live').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('train-');
    const link = page.getByRole('dialog').locator('.found a', { hasText: job });
    await link.waitFor();
    assert.equal(await link.locator('bdi').innerText(), 'train-7');
    assert.equal(await link.locator('code').innerText(), job);
  },
);

test('a view that is forbidden says so, and names a query that is allowed', async (t) => {
  const browser = browserOf(t);
  if (browser === undefined) return;
  await withPage(browser, served.url, async (page) => {
    await openView(page, served.url, 'holdings', 'ada:vision');
    const refusal = page.locator('.trouble.forbidden').first();
    await refusal.getByText('enter your project in the field “Project”').waitFor();
    assert.match(await refusal.innerText(), /the rule placement:holdings:list of the policy forbids it/);
    await page.getByRole('link', { name: 'Limits' }).click();
    await page.locator('.trouble.forbidden', { hasText: 'enter your project' }).waitFor();
    assert.match(await refusal.innerText(), /The token is of user ada in project vision, and has no role/);
    await page.getByRole('link', { name: 'Consumer', exact: true }).click();
    await page.locator('.trouble.forbidden', { hasText: 'enter your project in the field' }).waitFor();
    await page.getByRole('link', { name: 'Changes' }).click();
    await page.locator('.trouble.forbidden', { hasText: 'placement:changes:list' }).waitFor();
    assert.equal(await page.getByText('in the last minute').count(), 0, 'nothing is known of them');
    // The first view is for administrators, and leads to what a member may see.
    await page.getByRole('link', { name: 'Fleet' }).click();
    await page.locator('.trouble.forbidden').getByRole('link', { name: 'holders' }).click();
    await page.getByRole('heading', { name: 'Holders' }).waitFor();
  });
});

testView('aggregates are sorted, and saved as a file', 'aggregates', async (page) => {
  const names = () => page.locator('tbody th').allInnerTexts();
  await page.getByRole('button', { name: 'VCPU' }).click();
  await until('the fullest rack is first', async () => (await names()).join() === 'rack1,rack0');
  assert.match(page.url(), /sort=-VCPU/);
  const saving = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save as CSV' }).click();
  const [head, first] = (await readFile(await (await saving).path(), 'utf8')).split('\n');
  assert.match(head ?? '', /^aggregate,uuid,trees,VCPU used,VCPU capacity/);
  assert.equal(first?.startsWith(`rack1,${racks[1]},6,6,48`), true, first);
});

testView('a URL of no page says so', 'fleet/nonsense', async (page) => {
  await page.getByRole('heading', { name: 'No such page' }).waitFor();
  await page.getByRole('status').getByRole('link', { name: 'The fleet' }).click();
  await page.locator('canvas[data-cells="13"]').waitFor();
});

testView(
  'a long name does not make the page wider',
  'fit?resources=VCPU:8',
  async (page) => {
    await page.locator('.candidates').getByText(longName).waitFor();
    assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth')) <= 390);
    await page.setViewportSize({ width: 1280, height: 800 });
    const table = page.getByRole('region', { name: 'Table of the nearest trees' });
    const { all, seen } = await table.evaluate((part: { scrollWidth: number; clientWidth: number }) => ({
      all: part.scrollWidth,
      seen: part.clientWidth,
    }));
    assert.ok(all <= seen, `${all} pixels in ${seen}`);
  },
  { viewport: { width: 390, height: 800 } },
);

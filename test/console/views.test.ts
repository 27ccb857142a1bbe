/* Whether views follow what changes, what their URLs have, trees and aggregates, and the words for what is not there. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { openSums } from '../../console/holdings/sum_holdings.ts';
import { safeCell } from '../../console/text.ts';
import { uuidOf } from '../../console/uuid.ts';
import { shellWord } from '../../src/cli/shell_word.ts';
import { anyEngine } from '../support/engines.ts';
import { newClaim } from '../support/requests.ts';
import { until } from '../support/until.ts';
import { button, checkAccessibility, openView, rows } from './pages.ts';
import { browserForTests, type Served, serve, viewTests } from './serving.ts';

const browserOf = browserForTests();
const [host, node, rack] = [randomUUID(), randomUUID(), randomUUID()];
/** Consumers of the node: more than fit on a page, and the first one has most. */
const crowd = Array.from({ length: 53 }, () => randomUUID()).toSorted();

let served: Served;
before(async () => {
  served = await serve(anyEngine);
  const { placement } = served;
  await placement.providers.create({ uuid: host, name: 'rack7-host1' });
  await placement.inventories.set(host, {
    inventories: { DISK_GB: { total: 1000 } },
    resource_provider_generation: 0,
  });
  await placement.aggregates.set(host, { aggregates: [rack], resource_provider_generation: 1 });
  await placement.providers.create({ uuid: node, name: 'rack7-host1-numa0', parent_provider_uuid: host });
  await placement.inventories.set(node, {
    inventories: { VCPU: { total: 100 }, MEMORY_MB: { total: 262_144 } },
    resource_provider_generation: 0,
  });
  await placement.allocations.setMany(
    Object.fromEntries(crowd.map((uuid, index) => [uuid, claim(index === 0 ? 40 : 1, index === 1 ? 'beta' : 'alpha')])),
  );
});
after(() => served.close());

const claim = (VCPU: number, project: string) => ({
  ...newClaim({ [node]: { VCPU } }),
  project_id: project,
  user_id: 'ada',
});

const { testView } = viewTests(browserOf, () => served);

testView('the list of consumers follows claims', 'consumers?project=later', async (page) => {
  await page.getByRole('status').getByText('There is no such consumer.').waitFor();
  await page.locator('.dot.live').waitFor();
  const uuid = randomUUID();
  await served.placement.allocations.set(uuid, claim(2, 'later'));
  await page.getByRole('link', { name: uuid }).waitFor();
  await page.getByText(/^As of \d\d:\d\d:\d\d, follows changes$/).waitFor();
  await served.placement.allocations.delete(uuid);
  await page.getByRole('status').getByText('There is no such consumer.').waitFor();
});

const late = randomUUID();
testView('the page of a consumer shows it when it comes, and a new term', `consumers/${late}`, async (page) => {
  await page.getByText('It has nothing (any more).').waitFor();
  await page.locator('.dot.live').waitFor();
  await served.placement.allocations.set(late, claim(3, 'alpha'));
  await page.getByRole('cell', { name: '3 VCPU' }).waitFor();
  await page.locator('.facts').getByText('it is deleted').waitFor();
  const { consumer_generation } = await served.placement.consumers.show(late);
  await served.placement.consumers.setTerm(late, { expires_in: 3600, consumer_generation });
  await page.locator('.facts').getByText('it is deleted').waitFor({ state: 'detached' });
  await served.placement.allocations.delete(late);
});

testView('a link has the name of its provider, also after an error, and a new name', 'limits', async (page) => {
  await page.route(/provider_summaries\?/, (route) => route.fulfill({ status: 500, body: 'no' }), { times: 1 });
  await openView(page, served.url, `consumers/${crowd[0]}`);
  await page.getByRole('link', { name: 'rack7-host1-numa0' }).waitFor();
  await page.locator('.dot.live').waitFor();
  const rename = (name: string) => served.placement.providers.update(node, { name, parent_provider_uuid: host });
  await rename('another-name');
  await page.getByRole('link', { name: 'another-name' }).waitFor();
  await rename('rack7-host1-numa0');
});

testView('a provider shows a child that is created', `providers/${host}`, async (page) => {
  await page.getByRole('heading', { name: 'Tree (2 providers)' }).waitFor();
  await page.locator('.dot.live').waitFor();
  const child = randomUUID();
  await served.placement.providers.create({ uuid: child, name: 'new-child', parent_provider_uuid: host });
  await page.getByRole('link', { name: 'new-child' }).waitFor();
  await served.placement.providers.delete(child);
  await page.getByRole('heading', { name: 'Tree (2 providers)' }).waitFor();
});

testView('where something fits follows claims, and says as of when', 'fit?resources=VCPU:2', async (page) => {
  const count = async () => Number((await page.locator('.count strong').textContent()) ?? Number.NaN);
  await until('4 fit', async () => (await count()) === 4);
  await page.locator('.dot.live').waitFor();
  await page.locator('.as-of').waitFor();
  const uuid = randomUUID();
  await served.placement.allocations.set(uuid, claim(4, 'alpha'));
  await until('2 fit', async () => (await count()) === 2);
  await served.placement.allocations.delete(uuid);
  await until('4 fit again', async () => (await count()) === 4);
});

testView('consumers have their amounts and age, are sorted, and pages have URLs', `providers/${node}`, async (page) => {
  const first = () => rows(page).locator('a').first().innerText();
  const table = page.getByRole('region', { name: /^Table of \d+ consumers$/ });
  await table.waitFor();
  const firstOf = () => table.locator('tbody th').first().innerText();
  assert.equal(await firstOf(), crowd[0]);
  await button(page, 'VCPU').click();
  await page.waitForURL(/sort=-VCPU/);
  assert.equal(await firstOf(), crowd[0]);
  await button(page, 'VCPU ▾').or(button(page, 'VCPU')).click();
  await until('the one that has most is the last', async () => (await firstOf()) !== crowd[0]);
  await table
    .getByRole('cell', { name: /^\d+ (s|min) ago$/ })
    .first()
    .waitFor();
  await page.getByText('The order is of this page.').waitFor();

  await button(page, 'Its whole tree').click();
  await page.waitForURL(/in=tree/);
  await until('the amounts of the tree are shown', async () => (await table.getByTitle('40 VCPU').count()) === 1);
  await button(page, 'Next').click();
  await page.waitForURL(/after=/);
  await until('the second page is shown', async () => (await table.locator('tbody tr').count()) === 3);
  // Another tab shows the same, and knows the first page only.
  const { pathname, search } = new URL(page.url());
  await button(page, 'Previous').click();
  await until('the first page is shown', async () => (await table.locator('tbody tr').count()) === 50);
  await openView(page, served.url, (pathname + search).replace('/console/', ''));
  await until('the second page is shown again', async () => (await table.locator('tbody tr').count()) === 3);
  await button(page, 'First page').click();
  await until('the first page is shown again', async () => (await table.locator('tbody tr').count()) === 50);
  assert.doesNotMatch(page.url(), /after=/);
  assert.match(page.url(), /in=tree/);
  await first();
});

testView('the fields of a filter have what the URL has, and a type may be in lower case', 'consumers', async (page) => {
  await page.getByRole('textbox', { name: 'Type' }).fill('instance');
  await page.getByRole('textbox', { name: 'Project' }).fill(' beta ');
  await button(page, 'Find').click();
  await page.waitForURL(/project=beta&type=INSTANCE/);
  await page.getByRole('link', { name: crowd[1] ?? '' }).waitFor();
  await page.goBack();
  await until('the fields are empty', async () => {
    const values = await Promise.all(
      ['Type', 'Project'].map((name) => page.getByRole('textbox', { name }).inputValue()),
    );
    return values.join('') === '';
  });
});

testView('what is not there is said in words', 'providers/%E0%A4%A', async (page) => {
  await page.getByRole('alert').getByText('“%E0%A4%A” is not a UUID.').waitFor();
  await openView(page, served.url, 'consumers/no-uuid');
  await page.getByRole('alert').getByText('“no-uuid” is not a UUID.').waitFor();
  assert.equal(await page.getByText('It has nothing').count(), 0);
  const gone = randomUUID();
  await openView(page, served.url, `providers/${gone}`);
  await page.getByRole('status').getByText(`There is no provider with the UUID ${gone} (any more).`).waitFor();
  assert.equal(await page.getByText('in_tree').count(), 0);
});

testView(
  'a host shows the totals of its tree, and asks why something does not fit on it',
  `providers/${host}`,
  async (page) => {
    const totals = page.getByRole('region', { name: 'Tree' }).locator('.amounts');
    await totals.getByText('VCPU').waitFor();
    assert.match(await totals.innerText(), /92 of 100\s+92%/);
    await page.getByRole('link', { name: 'why does something not fit here?' }).click();
    await page.waitForURL(/fit\?resources=VCPU:2,MEMORY_MB:4096,DISK_GB:20&tree=/);
    assert.equal(await page.getByLabel('Resource class 2').inputValue(), 'MEMORY_MB');
    assert.equal(await page.getByLabel('Name, part of a name, or UUID of a provider').inputValue(), host);
    // The explanation of this host comes before the whole fleet.
    await page.getByText('It fits 1 of 1 tree.').first().waitFor();
    const headings = await page.locator('.answers h2').allInnerTexts();
    assert.equal(headings[0], 'Why not this host?');
  },
);

testView('providers below roots are found by a part of their name', 'providers', async (page) => {
  await page.getByLabel('Part of a name or UUID').fill('OST1-numa');
  await page.keyboard.press('Enter');
  await page.waitForURL(/providers\?name=OST1-numa/);
  await page.getByRole('link', { name: 'rack7-host1-numa0' }).click();
  await page.waitForURL(`${served.url}/console/providers/${node}`);
});

testView(
  'an aggregate is opened from a provider: totals, hosts, its UUID to copy, and what fits',
  `providers/${host}`,
  async (page) => {
    await page.getByRole('link', { name: rack }).click();
    await page.waitForURL(`${served.url}/console/aggregates/${rack}`);
    await page
      .locator('.totals')
      .getByText(/^92 of 100$/)
      .waitFor();
    await rows(page).getByRole('link', { name: 'rack7-host1' }).waitFor();
    await button(page, 'Copy the UUID').click();
    await page.getByText('Copied').waitFor();
    assert.equal(await page.evaluate<string>('navigator.clipboard.readText()'), rack);
    await checkAccessibility(page, 'an aggregate');
    await page.getByRole('link', { name: 'what fits here?' }).click();
    await page.waitForURL(new RegExp(`member_of=${rack}`));
    await page.getByRole('link', { name: 'Aggregates' }).click();
    await rows(page).getByRole('link').first().waitFor();
    await checkAccessibility(page, 'the aggregates');
  },
  { permissions: ['clipboard-read', 'clipboard-write'] },
);

testView(
  'a condition that leaves no tree is dropped by a click',
  'fit?resources=VCPU:2,DISK_GB:5000&required=HW_CPU_X86_AVX2',
  async (page) => {
    await page.getByText('It fits none of 1 tree.').waitFor();
    await page.getByRole('link', { name: 'Drop required=HW_CPU_X86_AVX2' }).click();
    await page.waitForURL(/fit\?resources=VCPU:2,DISK_GB:5000$/);
    await page.getByRole('link', { name: 'Drop resources=DISK_GB:5000' }).click();
    await page.waitForURL(/fit\?resources=VCPU:2$/);
    await page.getByText('It fits 1 of 1 tree.').waitFor();
    assert.equal(await page.getByRole('link', { name: /^Drop/ }).count(), 0, 'the last class');
  },
);

testView('a class that does not exist brings those with a similar name', 'fit?resources=GPU:1', async (page) => {
  await page.getByRole('link', { name: 'VGPU', exact: true }).waitFor();
  await page.getByRole('link', { name: 'PGPU', exact: true }).click();
  await page.waitForURL(/fit\?resources=PGPU:1/);
  assert.equal(await page.getByLabel('Resource class 1').inputValue(), 'PGPU');
});

testView('one search, opened by /, finds parts of names and UUIDs of anything', 'limits', async (page) => {
  await page.locator('.dot.live').waitFor();
  await page.keyboard.press('/');
  const dialog = page.getByRole('dialog', { name: 'Search' });
  const field = dialog.getByRole('textbox');
  const links = dialog.getByRole('link');
  for (const [text, name] of [
    ['ST1-NUMA', 'rack7-host1-numa0'],
    [node.slice(9, 23), 'rack7-host1-numa0'],
    [rack.slice(0, 13), rack],
    [crowd[5]?.slice(0, 18) ?? '', crowd[5] ?? ''],
  ] as const) {
    await field.fill(text);
    await links.filter({ hasText: name }).first().waitFor();
  }
  await field.fill('host1');
  await checkAccessibility(page, 'the search');
  await page.keyboard.press('Enter');
  await page.waitForURL(`${served.url}/console/providers/${host}`);
  await dialog.waitFor({ state: 'detached' });
  await page.keyboard.press('/');
  await field.fill('nothing has this name');
  await dialog.getByText('Nothing has this in its name or UUID.').waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  // In a field a slash is a slash.
  await openView(page, served.url, 'consumers');
  await page.getByRole('textbox', { name: 'Part of the name' }).fill('');
  await page.keyboard.type('a/b?');
  assert.equal(await page.getByRole('textbox', { name: 'Part of the name' }).inputValue(), 'a/b?');
});

testView('a view tells the same by curl and command, and how a host is drained', `providers/${host}`, async (page) => {
  await page.getByText('The same by curl and command').click();
  const code = page.locator('.same-as code');
  for (const text of [
    `'OpenStack-API-Version: placement 2.`,
    `${served.url}/provider_summaries?in_tree=${host}`,
    // A name may look like the UUID of another provider, or like an option.
    `placement provider tree ${host} --usage`,
    `placement drain ${host}`,
    `placement release --in-tree ${host}`,
  ]) {
    await code.filter({ hasText: text }).first().waitFor();
  }
  await checkAccessibility(page, 'the commands');
  await openView(page, served.url, `consumers/${crowd[0]}`);
  await page.getByText('The same by curl and command').click();
  await code.filter({ hasText: `placement allocation delete ${crowd[0]}` }).waitFor();
  await openView(page, served.url, `fit?resources=VCPU:8&required=!HW_CPU_X86_AVX2&tree=${host}`);
  await page.getByText('The same by curl and command').click();
  await code
    .filter({ hasText: `placement candidate why VCPU=8 --required '!HW_CPU_X86_AVX2' --host ${host}` })
    .waitFor();
});

testView(
  'in a narrow window names leave the numbers beside them in sight',
  `providers/${node}`,
  async (page) => {
    for (const cell of [
      page.locator('.inventories td.number').first(),
      page
        .getByRole('region', { name: /^Table of \d+ consumers$/ })
        .locator('td.number')
        .first(),
    ]) {
      await cell.waitFor();
      const { x, width } = (await cell.boundingBox()) ?? assert.fail();
      assert.ok(x + width <= 390, `it ends at ${x + width} pixels`);
    }
  },
  { viewport: { width: 390, height: 844 } },
);

testView('after an error that may pass a view reads again, though nothing changes', 'limits', async (page) => {
  await page.locator('.dot.live').waitFor();
  await page.clock.install();
  const all = /\/(provider_summaries|allocation_candidates)\?/;
  for (const [view, shown] of [
    [`providers/${host}`, 'rack7-host1'],
    ['fit?resources=VCPU:1', 'can be claimed at the same time'],
  ] as const) {
    await page.route(all, (route) =>
      route.fulfill({ status: 500, json: { errors: [{ status: 500, detail: 'lost' }] } }),
    );
    await page.evaluate(
      `history.pushState(null, '', '/console/${view}'); dispatchEvent(new PopStateEvent('popstate'))`,
    );
    await page.locator('main .trouble', { hasText: 'could not be read. lost' }).first().waitFor();
    await page.unroute(all);
    await page.clock.fastForward(20_000);
    await page.locator('main').getByText(shown).first().waitFor();
    await page.locator('main .trouble').first().waitFor({ state: 'detached' });
  }
});

testView('what is held is summed by project, user and type', 'holdings', async (page) => {
  await button(page, 'By project').click();
  await page.waitForURL(/holdings\?sum=project/);
  const row = (name: string) => rows(page).filter({ has: page.locator('th', { hasText: name }) });
  await row('alpha').waitFor();
  assert.deepEqual(await row('alpha').locator('td').allInnerTexts(), ['52', '91']);
  assert.deepEqual(await row('beta').locator('td').allInnerTexts(), ['1', '1']);
  await page.getByText(/^As of \d\d:\d\d:\d\d$/).waitFor();
  await checkAccessibility(page, 'the sums');
  // A page that was left open says that its sums are of another day.
  await page.clock.setFixedTime(Date.now() + 86_400_000);
  await button(page, 'project').click();
  await page.getByText(/^As of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/).waitFor();
  await button(page, 'By type').click();
  await row('INSTANCE').waitFor();
  await button(page, 'By user').click();
  await row('ada').getByRole('link').click();
  await page.waitForURL(/holdings\?user=ada$/);
  await openView(page, served.url, 'holdings?sum=other');
  await page.locator('button[aria-pressed="true"]', { hasText: 'Each' }).waitFor();
});

test('holdings are summed page by page, and a consumer on two pages counts once', () => {
  const holding = (consumer: string, project_id: string, VCPU: number) => ({
    consumer,
    project_id,
    user_id: 'ada',
    consumer_type: 'JOB',
    resources: { VCPU },
  });
  const sums = openSums('project');
  sums.add([holding('a', 'one', 2), holding('b', 'two', 5)]);
  sums.add([holding('a', 'one', 3)]);
  assert.deepEqual(sums.sums(), [
    { key: 'one', consumers: 1, amounts: new Map([['VCPU', 5]]) },
    { key: 'two', consumers: 1, amounts: new Map([['VCPU', 5]]) },
  ]);
});

testView('consumers whose term ends soon are found', 'consumers', async (page) => {
  const uuid = randomUUID();
  await served.placement.allocations.set(uuid, { ...claim(1, 'soon'), expires_in: 1800 });
  for (const [within, isFound] of [
    ['10 minutes', false],
    ['an hour', true],
  ] as const) {
    await page.getByRole('combobox', { name: 'Ends within' }).selectOption(within);
    await button(page, 'Find').click();
    if (isFound) await page.getByRole('link', { name: uuid }).waitFor();
    else await page.getByText('There is no such consumer.').waitFor();
  }
  assert.match(page.url(), /within=3600/);
  for (const [search, chosen] of [
    ['within=5400', '5,400 seconds'],
    ['within=1e300', 'any time, or never'],
    ['within=86400&project=&user=&type=&name=&after=', 'a day'],
  ] as const) {
    await openView(page, served.url, `consumers?${search}`);
    await page.getByRole('link', { name: uuid }).waitFor();
    const ends = page.getByRole('combobox', { name: 'Ends within' });
    assert.equal(await ends.locator('option:checked').textContent(), chosen);
  }
  await served.placement.allocations.delete(uuid);
});

testView('a table is saved as CSV, with exact numbers', 'fleet?as=table&class=DISK_GB', async (page) => {
  await rows(page).first().waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Save as CSV').click()]);
  assert.equal(download.suggestedFilename(), 'DISK_GB.csv');
  const text = await readFile(await download.path(), 'utf8');
  assert.equal(text, `provider,uuid,group,used,capacity,total,reserved\nrack7-host1,${host},all,0,1000,1000,0\n`);
});

test('words of a command and cells of a table are safe, whatever they contain', () => {
  assert.equal(shellWord('host-1.rack'), 'host-1.rack');
  assert.equal(shellWord(`it's; rm -rf $HOME`), `'it'\\''s; rm -rf $HOME'`);
  assert.equal(shellWord(''), `''`);
  assert.equal(safeCell('=HYPERLINK("x")'), `'=HYPERLINK("x")`);
  assert.equal(safeCell(-3), -3);
});

testView('? tells the keys and the words', 'fleet', async (page) => {
  await page.locator('.dot.live').waitFor();
  await page.keyboard.press('?');
  const dialog = page.getByRole('dialog', { name: 'Keys and words' });
  await dialog.getByText('a quality that is not counted').waitFor();
  await checkAccessibility(page, 'the help');
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
});

test('a UUID is read with hyphens or without, in either case', () => {
  const uuid = randomUUID();
  for (const text of [uuid, uuid.toUpperCase(), uuid.replaceAll('-', '')]) assert.equal(uuidOf(text), uuid);
  for (const text of ['', 'x', `${uuid}0`, uuid.slice(1)]) assert.equal(uuidOf(text), undefined);
});

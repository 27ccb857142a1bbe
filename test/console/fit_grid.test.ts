/* A query that is shown on the grid, and hosts that are drained: on the grid, on their pages and in explanations. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { fitsOf, isNear } from '../../console/fit/fits.ts';
import { leftOutOf, withoutQuery } from '../../console/fit/query_fields.ts';
import { drainTree, undrainTree } from '../../src/cli/drain_tree.ts';
import type { UnmetCondition } from '../../src/client/candidate_questions.ts';
import { anyEngine } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { checkAccessibility, openView } from './pages.ts';
import { browserForTests, type Served, serve, viewTests } from './serving.ts';

const browserOf = browserForTests();
/** How many processors each host has. In the order of names: it fits 4 times, once, nearly, not, and one is drained. */
const hosts = { 'host-1': 16, 'host-2': 4, 'host-3': 3, 'host-4': 1, 'host-5': 32 };
type Name = keyof typeof hosts;
const names = Object.keys(hosts) as Name[]; // its keys
const uuids = new Map(names.map((name) => [name, randomUUID()]));
const uuidOf = (name: Name): string => uuids.get(name) ?? assert.fail(name);

const claim = (name: Name, VCPU: number) => ({
  project_id: 'vision',
  user_id: 'ada',
  consumer_type: 'INSTANCE',
  consumer_generation: null,
  allocations: { [uuidOf(name)]: { resources: { VCPU } } },
});

let served: Served;
before(async () => {
  served = await serve(anyEngine);
  const { placement } = served;
  for (const name of names) {
    await placement.providers.create({ uuid: uuidOf(name), name });
    const inventories = { VCPU: { total: hosts[name], reserved: name === 'host-5' ? 2 : 0 } };
    await placement.inventories.set(uuidOf(name), { inventories, resource_provider_generation: 0 });
  }
  await placement.allocations.set(randomUUID(), claim('host-5', 7));
  await drainTree(placement, uuidOf('host-5'));
});
after(() => served.close());

const { testView } = viewTests(browserOf, () => served);
const legend = (page: Page) => page.getByRole('list', { name: 'What the colours mean' });
const side = (page: Page) => page.locator('.fleet-side');
const drawn = (page: Page) =>
  until('the cells are drawn', async () => (await page.locator('canvas').getAttribute('data-drawn')) === '5');

/** For each cell, in their order, the colour near its lower right corner; the colours of stripes are left out. */
async function cellColours(page: Page): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(
    `(([canvas]) => {
      const side = Math.min(104, canvas.clientWidth / 5);
      const context = canvas.getContext('2d');
      return [0, 1, 2, 3, 4].map((place) => {
        const at = (part) => Math.round(part * devicePixelRatio);
        return [...context.getImageData(at(side * (place + 0.5)), at(side * 0.72), 1, 1).data].slice(0, 3).join();
      });
    })(document.querySelectorAll('canvas'))`,
  );
}

testView('a query is shown on the grid, with a legend, and follows claims', 'fit?resources=VCPU:4', async (page) => {
  await page.getByRole('link', { name: 'Show it on the grid' }).click();
  await page.waitForURL(`${served.url}/console/fleet?resources=VCPU:4`);
  await side(page).getByText('It fits 2 of 5 trees, up to 4 times in one').waitFor();
  for (const text of ['nearly fits (1)', 'does not fit, hollow (1)', 'drained, striped (1)']) {
    await legend(page).getByText(text).waitFor();
  }
  await drawn(page);
  const colours = await cellColours(page);
  assert.equal(new Set(colours.slice(0, 4)).size, 4, `four kinds of cells: ${colours}`);
  await page.getByText(/^As of \d\d:\d\d:\d\d, follows changes$/).waitFor();
  await page.locator('canvas').focus();
  for (const text of [
    'It fits 4 times.',
    'It fits once.',
    'resources=VCPU:4: host-3 has 3 left',
    'resources=VCPU:4: host-4 has 1 left',
    'resources=VCPU:4: host-5 is drained',
  ]) {
    await page.keyboard.press('ArrowRight');
    await side(page).locator('section').getByText(text, { exact: true }).waitFor();
  }
  const consumer = randomUUID();
  await served.placement.allocations.set(consumer, claim('host-2', 1));
  await side(page).getByText('It fits 1 of 5 trees, up to 4 times in one').waitFor();
  await legend(page).getByText('nearly fits (2)').waitFor();
  await until('the cell has another colour', async () => (await cellColours(page))[1] !== colours[1]);
  await served.placement.allocations.delete(consumer);
  await side(page).getByText('It fits 2 of 5 trees').waitFor();
});

testView('the URL has the query, and there are ways back', 'fleet?resources=VCPU:4&search=host-3', async (page) => {
  await side(page).getByText('It fits 2 of 5 trees').waitFor();
  await page.getByText('5 root providers, 1 found').waitFor();
  await page.getByRole('button', { name: 'Table' }).click();
  const cells = page.locator('tbody tr').filter({ hasText: 'host-3' }).getByRole('cell');
  await until('it nearly fits', async () => {
    const [fits, why] = await cells.allInnerTexts();
    return fits === '0, nearly' && why === 'resources=VCPU:4: host-3 has 3 left';
  });
  await page.getByLabel('Search').fill('');
  const order = () => page.locator('tbody th a').allInnerTexts();
  await until('most often first', async () => (await order()).join() === names.join());
  await page.getByRole('button', { name: 'fits' }).click();
  await page.waitForURL(/sort=fits/);
  await until('nearly comes first', async () => (await order()).join() === 'host-3,host-2,host-1,host-4,host-5');
  await page.getByRole('link', { name: 'Show how full' }).click();
  await page.waitForURL((url) => !url.search.includes('resources') && url.search.includes('as=table'));
  await page.getByRole('combobox', { name: 'Class', exact: true }).waitFor();
  await page.goBack();
  await page.getByRole('link', { name: 'Back to the query' }).click();
  await page.waitForURL(`${served.url}/console/fit?resources=VCPU:4`);
  await page.locator('.count').getByText('5').waitFor();
});

testView('the form and the grid offer only classes in use', 'fit?resources=PGPU:1', async (page) => {
  await page.getByText('No provider has any PGPU.').waitFor();
  assert.equal(await page.getByRole('link', { name: 'Show it on the grid' }).count(), 0);
  const offered = () =>
    page
      .locator('datalist')
      .first()
      .locator('option')
      .evaluateAll((all: readonly { readonly value: string }[]) => all.map(({ value }) => value));
  await until('one class is offered', async () => (await offered()).join() === 'VCPU');
  await openView(page, served.url, 'fleet?resources=PGPU:1');
  await page.getByText('No provider has any PGPU, so it fits nowhere.').waitFor();
});

testView('a drained host is called drained on the grid and in its table', `fleet`, async (page) => {
  await page.getByText('0 have none (hollow), 1 drained (striped).').waitFor();
  await drawn(page);
  await openView(page, served.url, `fleet?chosen=${uuidOf('host-5')}`);
  await side(page).getByText('It is drained. Still held: 7 VCPU.', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Table' }).click();
  await page.locator('tbody tr', { hasText: 'host-5' }).getByText('drained', { exact: true }).waitFor();
  assert.equal(await page.locator('.tag').count(), 1);
});

testView('a query explains a drained host as drained', `fit?resources=VCPU:4`, async (page) => {
  const row = page.locator('tbody tr', { hasText: 'host-5' });
  await row.getByRole('cell', { name: 'host-5 is drained', exact: true }).waitFor();
  await page.locator('tbody tr', { hasText: 'host-4' }).getByRole('cell', { name: 'host-4 has 1 left' }).waitFor();
  await openView(page, served.url, `fit?resources=VCPU:4&tree=${uuidOf('host-5')}`);
  await until('both tables say it', async () => (await page.getByText('host-5 is drained').count()) === 2);
  assert.equal(await page.getByText(/-\d+ left/).count(), 0);
});

testView(
  'the page of a drained host says so, until the drain is lifted',
  `providers/${uuidOf('host-5')}`,
  async (page) => {
    const notice = page.locator('.drained');
    await notice.getByText('No new claim fits on its tree.').waitFor();
    await notice.getByText('It is drained. Still held: 7 VCPU.').waitFor();
    await notice.getByText('Reserved of this provider before the drain: 2 VCPU.').waitFor();
    await page.locator('.dot.live').waitFor();
    await checkAccessibility(page, 'a drained host');
    // Another program opens it, and the marks stay.
    const { inventories, resource_provider_generation } = await served.placement.inventories.list(uuidOf('host-5'));
    const { VCPU } = inventories;
    assert.ok(VCPU !== undefined);
    await served.placement.inventories.set(uuidOf('host-5'), {
      inventories: { VCPU: { ...VCPU, reserved: 0 } },
      resource_provider_generation,
    });
    await notice.getByText('it accepts claims again').waitFor();
    await undrainTree(served.placement, uuidOf('host-5'));
    await notice.waitFor({ state: 'detached' });
    await drainTree(served.placement, uuidOf('host-5'));
    await notice.getByText('It is drained.').waitFor();
  },
);

for (const [colorScheme, viewport] of [
  ['light', { width: 1300, height: 900 }],
  ['dark', { width: 390, height: 800 }],
] as const) {
  testView(
    `the grid of a query is used by screen reader, ${colorScheme}`,
    `fleet?resources=VCPU:4&chosen=${uuidOf('host-3')}`,
    async (page) => {
      await side(page).getByText('It nearly fits.', { exact: true }).waitFor();
      await checkAccessibility(page, 'the grid of a query');
      await page.getByRole('button', { name: 'Table' }).click();
      await page.locator('tbody tr').first().waitFor();
      await checkAccessibility(page, 'its table');
    },
    { colorScheme, viewport },
  );
}

testView('a text is measured once, and not again for each frame of a zoom', 'fleet?group=aggregate', async (page) => {
  await drawn(page);
  const zoom = async () => {
    for (const name of ['Zoom in', 'Zoom in', 'Zoom out', 'Zoom out']) {
      await page.getByRole('button', { name }).click();
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
    }
  };
  await zoom();
  await page.evaluate(`(() => {
    const { prototype } = CanvasRenderingContext2D;
    const { measureText } = prototype;
    globalThis.measured = 0;
    prototype.measureText = function (text) {
      globalThis.measured += 1;
      return measureText.call(this, text);
    };
  })()`);
  await zoom();
  assert.equal(await page.evaluate('measured'), 0);
});

const unmetOf = (asked: number | null, free: number | null): UnmetCondition => ({
  parameter: 'resources',
  value: 'VCPU:4',
  resource_provider: { uuid: 'a', name: 'a' },
  asked,
  free,
  reason: asked === null ? 'trait' : 'capacity',
});

test('a tree nearly fits where one condition is not met, and of an amount at least half is left', () => {
  assert.equal(isNear([unmetOf(4, 2)]), true);
  assert.equal(isNear([unmetOf(4, 1)]), false);
  assert.equal(isNear([unmetOf(4, -7)]), false);
  assert.equal(isNear([unmetOf(null, null)]), true);
  assert.equal(isNear([unmetOf(4, 3), unmetOf(null, null)]), false);
  assert.equal(isNear([]), false);
  const [one, two] = [
    { uuid: 'one', name: 'one' },
    { uuid: 'two', name: 'two' },
  ];
  const fits = fitsOf({ trees: [{ ...one, count: 3 }] }, [{ root: two, unmet: [unmetOf(4, 3)] }]);
  assert.deepEqual([fits.most, fits.times.get('one'), [...fits.near.keys()]], [3, 3, ['two']]);
  assert.equal(fitsOf({ trees: [] }, []).most, 0);
});

test('the URL of the grid without the query keeps all else', () => {
  const query = 'class=VCPU&group=aggregate&resources=VCPU:4&required_A=HW_X&group_policy=none&order=random&tree=x';
  assert.equal(withoutQuery(new URLSearchParams(query)).toString(), 'class=VCPU&group=aggregate');
});

test('conditions of the URL that the form lacks are named', () => {
  const query = 'class=VCPU&resources1=VCPU:4&limit=5&apart_from=u&with=v&with=w&requird=HW_X&tree=x';
  assert.deepEqual(leftOutOf(new URLSearchParams(query)), ['apart_from', 'with', 'requird']);
  const twice = [
    'resources=VCPU:4',
    'required=HW_X',
    'member_of=a',
    'same_subtree=_A,_B',
    'in_tree_A=x',
    'order=random',
  ];
  assert.deepEqual(leftOutOf(new URLSearchParams([...twice, ...twice].join('&'))), [
    'second in_tree_A',
    'second order',
  ]);
  assert.deepEqual(leftOutOf(new URLSearchParams('resources=VCPU:4&group_policy=zzz')), ['group_policy=zzz']);
  for (const known of ['none', 'isolate', ''])
    assert.deepEqual(leftOutOf(new URLSearchParams(`resources=VCPU:4&group_policy=${known}`)), []);
});

testView(
  'a query that the form cannot show says what is left out',
  'fit?resources=VCPU:4&apart_from=u&limit=5&order=random&order=name',
  async (page) => {
    const said = page.locator('.trouble', { hasText: 'The form of this console has no apart_from' });
    await said.getByText('no apart_from, no second order, of which the answer takes no account.').waitFor();
    await checkAccessibility(page, 'a part of a query');
    await openView(page, served.url, 'fleet?resources=VCPU:4&apart_from=u&class=VCPU');
    await said.waitFor();
    await page.getByRole('link', { name: 'Back to the query' }).click();
    await page.getByText('can be claimed at the same time').waitFor();
    assert.equal(await said.count(), 0);
  },
);

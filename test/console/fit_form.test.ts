/* The form of a query: amounts with units, and aggregates and providers by name. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { withNames, withUuids } from '../../console/fit/named.ts';
import { fieldsOf, searchOf, suggestionsFor, withoutCondition } from '../../console/fit/query_fields.ts';
import { worthwhile } from '../../console/fit/reason.ts';
import { amountFrom } from '../../console/text.ts';
import type { UnmetCondition } from '../../src/client/candidate_questions.ts';
import { anyEngine } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { checkAccessibility } from './pages.ts';
import { browserForTests, type Served, serve, viewTests } from './serving.ts';

const browserOf = browserForTests();
const hosts = ['rack01-host1', 'rack01-host2', 'rack02-host1', 'rack02-host2'];
const uuids = new Map(hosts.map((name) => [name, randomUUID()]));
const racks = new Map(['rack01', 'rack02'].map((name) => [name, randomUUID()]));

let served: Served;
before(async () => {
  served = await serve(anyEngine);
  for (const [name, uuid] of uuids) {
    await served.placement.providers.create({ uuid, name });
    await served.placement.inventories.set(uuid, {
      inventories: { VCPU: { total: 8 }, MEMORY_MB: { total: 196_608 } },
      resource_provider_generation: 0,
    });
    await served.placement.aggregates.set(uuid, {
      aggregates: [racks.get(name.slice(0, 6)) ?? ''],
      resource_provider_generation: 1,
    });
  }
});
after(() => served.close());
const { testView } = viewTests(browserOf, () => served);

test('an amount is a number, or one with a unit of its class', () => {
  const read = (name: string, ...texts: readonly string[]) => texts.map((text) => amountFrom(name, text));
  assert.deepEqual(
    read('MEMORY_MB', '200', '200 GB', '200GiB', '0.5 t', '1,024', '512 MB'),
    [200, 204_800, 204_800, 524_288, 1024, 512],
  );
  assert.deepEqual(read('MEMORY_MB', '1 KB', '1.5', '', '-1', '0', '1 XB', '2e3', '1,2'), Array(8).fill(undefined));
  assert.deepEqual(read('DISK_GB', '2 TB', '2048 MiB', '1 MB'), [2048, 2, undefined]);
  assert.deepEqual(read('NET_BW_EGR_KILOBIT_PER_SEC', '10 Gbit/s', '10G', '5 kbps'), [10_000_000, 10_000_000, 5]);
  assert.deepEqual(read('VCPU', '4', '4 GB', '4k'), [4, undefined, undefined]);
  // In floating-point numbers 2.01 * 1000 is less than 2010.
  assert.deepEqual(read('NET_BW_EGR_KILOBIT_PER_SEC', '2.01 Mbit/s', '4.35 Gbps'), [2010, 4_350_000]);
  assert.deepEqual(read('DISK_GB', '0.1 TB', '0.125 TB', '1.5 TiB'), [undefined, 128, 1536]);
  assert.deepEqual(read('NET_BW_EGR_KILOBIT_PER_SEC', '100 MB', '100 MiB'), [undefined, undefined]);
  assert.deepEqual(read('MEMORY_MB', '8 Gbit/s', '8 Gbps', '8 Gbit'), [undefined, undefined, undefined]);
});

test('classes are suggested for a part of their name and for a misspelled one', () => {
  const classes = ['VCPU', 'PCPU', 'MEMORY_MB', 'PGPU', 'VGPU', 'VGPU_DISPLAY_HEAD'];
  assert.deepEqual(suggestionsFor('gpu', classes).toSorted(), ['PGPU', 'VGPU', 'VGPU_DISPLAY_HEAD']);
  assert.deepEqual(suggestionsFor('MEMORY_BM', classes), ['MEMORY_MB']);
  assert.deepEqual(suggestionsFor('MEMORY', classes), ['MEMORY_MB']);
  assert.deepEqual(suggestionsFor('SOMETHING', classes), []);
});

test('a query without one of its conditions', () => {
  const without = (query: string, parameter: string, value: string) => {
    const next = withoutCondition(fieldsOf(new URLSearchParams(query)), parameter, value);
    return next === undefined ? undefined : decodeURIComponent(searchOf(next).toString());
  };
  const granular =
    'resources=VCPU:1&resources_1=PGPU:1&required_1=HW_A,!HW_B&resources_2=SRIOV_NET_VF:1&group_policy=isolate';
  const rest = 'resources=VCPU:1&resources_2=SRIOV_NET_VF:1&group_policy=isolate';
  assert.equal(without(`${granular}&same_subtree=_1,_2`, 'resources_1', 'PGPU:1'), `${rest}&same_subtree=_2`);
  assert.equal(without(granular, 'required_1', '!HW_B'), granular.replace(',!HW_B', ''));
  assert.equal(without(granular, 'group_policy', 'isolate'), granular.replace('isolate', 'none'));
  assert.equal(without('resources=VCPU:1&required=in:HW_A,HW_B', 'required', 'in:HW_A,HW_B'), 'resources=VCPU:1');
  assert.equal(without('resources=VCPU:1&member_of=a&member_of=!b', 'member_of', '!b'), 'resources=VCPU:1&member_of=a');
  assert.equal(
    without('resources=VCPU:1&in_tree=a&root_required=HW_A', 'in_tree', 'a'),
    'resources=VCPU:1&root_required=HW_A',
  );
  assert.equal(without('resources=VCPU:1&root_required=HW_A', 'root_required', 'HW_A'), 'resources=VCPU:1');
  assert.equal(without('resources=VCPU:1', 'resources', 'VCPU:1'), undefined, 'nothing is left');
  assert.equal(without('resources=VCPU:1', 'required', 'HW_A'), undefined, 'there is no such condition');
});

test('aggregates are named in conditions by their names', () => {
  const all = [...racks].map(([name, uuid]) => ({ name, uuid }));
  const [one, two] = [racks.get('rack01'), racks.get('rack02')];
  assert.equal(withUuids('rack01', all), one);
  assert.equal(withUuids('!in:RACK01,k02', all), `!in:${one},${two}`);
  assert.equal(withUuids('rack', all), 'rack', 'it may be either');
  assert.equal(withNames(`!in:${one},${two}`, all), '!in:rack01,rack02');
});

test('nearly fitting trees are hosts first, and no tree is listed twice', () => {
  const unmet = (reason: UnmetCondition['reason']): UnmetCondition => ({
    parameter: 'resources',
    value: 'VCPU:1',
    reason,
    resource_provider: { uuid: 'x', name: 'x' },
    asked: 1,
    free: 0,
  });
  const tree = (uuid: string, reason: UnmetCondition['reason']) => ({
    root: { uuid, name: uuid },
    unmet: [unmet(reason)],
  });
  const shared = {
    uuid: 'pool',
    name: 'pool',
    generation: 0,
    parent_provider_uuid: null,
    root_provider_uuid: 'pool',
    usages: {},
    traits: ['MISC_SHARES_VIA_AGGREGATE'],
    aggregates: [],
    inventories: {},
  };
  const nearest = [tree('pool', 'absent'), tree('other', 'tree'), tree('host', 'capacity')];
  assert.deepEqual(
    worthwhile(nearest, new Map([['pool', shared]])).map(({ root }) => root.uuid),
    ['host', 'pool'],
  );
});

testView('an amount with a unit is asked for as a number of its class', 'fit', async (page) => {
  await page.getByLabel('Resource class 1').fill('memory_mb');
  await page.getByLabel('Amount 1').fill('200 GB');
  await page.getByText('= 200 GiB, 204,800 MEMORY_MB').waitFor();
  await page.getByLabel('Amount 1').fill('200');
  await page.getByText('= 200 MiB').waitFor();
  await page.getByLabel('Amount 1').fill('200 apples');
  await page.getByRole('button', { name: 'Where does it fit?' }).click();
  assert.match(
    await page.getByLabel('Amount 1').evaluate((input: { validationMessage: string }) => input.validationMessage),
    /^A whole amount of MEMORY_MB, such as 8 MiB, 8 GiB or 8192$/,
  );
  assert.doesNotMatch(page.url(), /resources/);
  await page.getByLabel('Amount 1').fill('200 GB');
  await page.keyboard.press('Enter');
  await page.waitForURL(/resources=MEMORY_MB:204800$/);
  await page.getByText('rack01-host1 has 192 GiB left').waitFor();
  await checkAccessibility(page, 'a form with units');
});

testView('a class that two rows have is not sent', 'fit?resources=VCPU:1,VCPU:2', async (page) => {
  const before = page.url();
  await page.getByLabel('Amount 1').fill('3');
  await page.getByRole('button', { name: 'Where does it fit?' }).click();
  assert.equal(
    await page
      .getByLabel('Resource class 2')
      .evaluate((input: { validationMessage: string }) => input.validationMessage),
    'A row above has VCPU already',
  );
  assert.equal(page.url(), before);
  await page.getByRole('button', { name: 'Remove VCPU' }).last().click();
  await page.getByRole('button', { name: 'Where does it fit?' }).click();
  await page.waitForURL(/resources=VCPU:3$/);
});

testView(
  'words that are written and not added are asked for by the first click',
  'fit?resources=VCPU:1',
  async (page) => {
    await page.getByText('32 can be claimed').waitFor();
    await page.getByText('More conditions').click();
    await page.getByLabel('Traits of the root').fill('!HW_CPU_X86_AVX2');
    await page.getByLabel('Aggregates').fill('rack01');
    // If leaving the field added it, the form would grow, and the button would move away from the pointer.
    const traits = 'in:HW_CPU_X86_AVX,HW_CPU_X86_AVX2,HW_CPU_X86_FMA3,HW_CPU_X86_SSE42';
    await page.getByLabel('Traits', { exact: true }).fill(traits);
    const button = await page.getByRole('button', { name: 'Where does it fit?' }).boundingBox();
    assert.ok(button !== null);
    await page.mouse.click(button.x + button.width / 2, button.y + 8, { delay: 100 });
    await page.waitForURL((url) => url.searchParams.get('member_of') === racks.get('rack01'));
    const asked = new URL(page.url()).searchParams;
    assert.deepEqual([asked.get('required'), asked.get('root_required')], [traits, '!HW_CPU_X86_AVX2']);
  },
);

testView(
  'aggregates and trees are asked for by name, and a host by a part of it',
  'fit?resources=VCPU:1',
  async (page) => {
    await page.getByText('32 can be claimed').waitFor();
    await page.getByLabel('Aggregates').fill('rack01');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Remove rack01' }).waitFor();
    await page.getByRole('button', { name: 'Where does it fit?' }).click();
    await page.waitForURL(new RegExp(`member_of=${racks.get('rack01')}`));
    await page.getByText('16 can be claimed').waitFor();
    await page.getByLabel('In the tree of').fill('host1');
    await page.getByRole('button', { name: 'Where does it fit?' }).click();
    await page
      .getByRole('alert')
      .filter({ hasText: '2 providers have “host1” in their name: rack01-host1, rack02-host1' })
      .waitFor();
    await page.getByLabel('In the tree of').fill('01-host1');
    await page.getByRole('button', { name: 'Where does it fit?' }).click();
    await page.waitForURL(new RegExp(`in_tree=${uuids.get('rack01-host1')}`));
    await page.getByText('8 can be claimed').waitFor();

    const part = page.getByLabel('Name, part of a name, or UUID of a provider');
    await part.fill('host2');
    await page.getByRole('button', { name: 'Why not?' }).click();
    await page.getByText('2 providers have this in their name. Which one?').waitFor();
    await page.getByRole('link', { name: 'rack02-host2' }).click();
    await page.getByText('It fits none of 1 tree.').first().waitFor();
    await part.fill('01-host2');
    await page.getByRole('button', { name: 'Why not?' }).click();
    await page.getByText('it is another tree').waitFor();
  },
);

testView('by keyboard the focus stays in the form, or goes to the view', 'fit?resources=VCPU:2', async (page) => {
  const focused = () =>
    page.evaluate<string>(
      `[document.activeElement.tagName, document.activeElement.textContent || document.activeElement.name].join(' ')`,
    );
  const press = async (name: string) => {
    await page.getByRole('button', { name, exact: true }).focus();
    await page.keyboard.press('Enter');
  };
  const isFocused = (what: RegExp) => until(`the focus is on ${what}`, async () => what.test(await focused()));
  await page.getByLabel('Traits', { exact: true }).focus();
  for (const trait of ['HW_CPU_X86_AVX2', 'HW_CPU_X86_AVX']) {
    await page.keyboard.type(trait);
    await page.keyboard.press('Enter');
  }
  await press('Remove HW_CPU_X86_AVX');
  await isFocused(/^INPUT required$/);
  await press('Add a class');
  await press('Remove row 2');
  await isFocused(/^BUTTON Add a class$/);
  await press('Add a group');
  await press('Remove the group');
  await isFocused(/^BUTTON Add a group$/);
  // The form and the answers of another query take the place of those that had the focus.
  await press('Where does it fit?');
  await page.waitForURL(/required=HW_CPU_X86_AVX2$/);
  await isFocused(/^MAIN /);
  await page.getByRole('link', { name: 'Drop required=HW_CPU_X86_AVX2' }).focus();
  await page.keyboard.press('Enter');
  await page.waitForURL(/resources=VCPU:2$/);
  await isFocused(/^MAIN /);
});

testView('sums that are read again by keyboard keep the focus', 'holdings?sum=project', async (page) => {
  await page.getByText('No consumer holds this.').waitFor();
  const again = page.getByRole('button', { name: 'Read again' });
  await again.focus();
  const answered = page.waitForResponse((response) => response.url().includes('/holdings?'));
  await page.keyboard.press('Enter');
  await answered;
  await page.locator('button[aria-disabled="false"]:focus').waitFor();
});

/* What a project used in the last months, as the history of a real service tells it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { anyEngine } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { checkAccessibility, openView, withPage } from './pages.ts';
import { browserForTests, type Served, serve, shows } from './serving.ts';

const browserOf = browserForTests();
const team = 'team <b>vision</b> & co';
const host = randomUUID();

/** When the consumer began that has something now. The page has this clock: on the real one another month may begin meanwhile. */
let present: Date;

/** The first moment of the month, so many months ago. */
const monthAgo = (months: number): Date => new Date(Date.UTC(present.getUTCFullYear(), present.getUTCMonth() - months));
const nameOf = (month: Date): string => month.toISOString().slice(0, 7);

/** Records that have ended: so many months ago, from the beginning of the month, an amount for some hours. */
const ended = () => [
  { months: 2, name: 'PGPU', amount: 4, hours: 12 },
  { months: 2, name: 'VCPU', amount: 100, hours: 25.5 },
  { months: 4, name: 'PGPU', amount: 1, hours: 24 },
  { months: 11, name: 'CUSTOM_GONE', amount: 3, hours: 0.5 },
  // It ends in the month after, which is the first one that is shown: one hour of it counts.
  { months: 12, name: 'VCPU', amount: 1, hours: (monthAgo(11).getTime() - monthAgo(12).getTime()) / 3_600_000 + 1 },
  { months: 14, name: 'PGPU', amount: 8, hours: 24 },
];

let served: Served;
before(async () => {
  served = await serve(anyEngine, { history: { enabled: true } });
  const { placement, service } = served;
  const { kysely } = service.database;
  await until('the history is on', async () => {
    const { rows } = await sql`select from usage_history where is_complete`.execute(kysely);
    return rows.length > 0;
  });
  await placement.providers.create({ uuid: host, name: 'host-1' });
  const inventories = { VCPU: { total: 8 } };
  await placement.inventories.set(host, { inventories, resource_provider_generation: 0 });
  await placement.allocations.set(randomUUID(), {
    allocations: { [host]: { resources: { VCPU: 1 } } },
    project_id: team,
    user_id: 'ada',
    consumer_type: 'JOB',
    consumer_generation: null,
    name: 'job-7',
  });
  const [record] = await Array.fromAsync(placement.usageRecords.list({ project_id: team }));
  present = new Date(record?.from ?? '');
  for (const { months, name, amount, hours } of ended()) {
    const began = monthAgo(months);
    const end = new Date(began.getTime() + hours * 3_600_000);
    await sql`insert into usage_records (id, consumer_id, name, project_id, user_id, consumer_type_id, provider_uuid, provider_name, class_name,
        amount, began_at, ended_at, ended)
      select nextval('usage_record_id_seq'), ${randomUUID()}::text, null, p.id, u.id, null, ${host}::text, 'host-1', ${name}::text,
        ${amount}::integer, ${began.toISOString()}::timestamptz, ${end.toISOString()}::timestamptz, 'released'
      from projects p, users u where p.external_id = ${team} and u.external_id = 'ada'`.execute(kysely);
  }
});
after(() => served.close());

/** The texts of the cells, row by row. */
const cellsOf = (page: Page): Promise<readonly (readonly string[])[]> =>
  page
    .getByRole('region', { name: `Months of project ${team}` })
    .locator('tr')
    .evaluateAll(
      (
        rows: readonly { readonly children: Iterable<{ readonly innerText: string }> }[],
      ): readonly (readonly string[])[] =>
        rows.map(({ children }) => [...children].map(({ innerText }) => innerText.trim())),
    );

for (const [colorScheme, viewport] of [
  ['light', { width: 1280, height: 800 }],
  ['dark', { width: 390, height: 800 }],
] as const) {
  test(`the last twelve months of a project, by class, ${colorScheme}`, async (t) => {
    const browser = browserOf(t);
    if (browser === undefined) return;
    const use = async (page: Page) => {
      await page.clock.setFixedTime(present);
      await openView(page, served.url, `holdings?project=${encodeURIComponent(team)}`);
      const region = page.getByRole('region', { name: `Months of project ${team}` });
      await region.waitFor();
      const [headings, ...rows] = await cellsOf(page);
      assert.deepEqual(headings, ['month', 'CUSTOM_GONE', 'PGPU', 'VCPU']);
      const used: Readonly<Record<number, readonly string[]>> = {
        0: ['0', '0', '<0.1'],
        2: ['0', '48', '2,550'],
        4: ['0', '24', '0'],
        11: ['1.5', '0', '1'],
      };
      const expected = Array.from({ length: 12 }, (_, ago) => [
        `${nameOf(monthAgo(ago))}${ago === 0 ? ' so far' : ''}`,
        ...(used[ago] ?? ['0', '0', '0']),
      ]);
      assert.deepEqual(rows, expected);
      // A bar is as long as its part of the largest one of its class.
      const bar = (ago: number, column: number) =>
        region.locator('tbody tr').nth(ago).locator('td').nth(column).locator('.fill').getAttribute('width');
      assert.deepEqual([await bar(2, 1), await bar(4, 1), await bar(3, 1)], ['100', '50', '0']);
      // The table scrolls by keys, and its rows and columns have headers.
      await page.getByRole('rowheader', { name: nameOf(monthAgo(2)) }).waitFor();
      await page.getByRole('columnheader', { name: 'PGPU' }).waitFor();
      await region.focus();
      assert.equal(
        await page.evaluate('document.activeElement.getAttribute("aria-label")'),
        `Months of project ${team}`,
      );
      await checkAccessibility(page, 'the months of a project');
      assert.equal(await page.locator('main b').count(), 0);
      // Another project has no usage, and without a project nothing is requested.
      await page.getByRole('textbox', { name: 'Project' }).fill('robots');
      await page.keyboard.press('Enter');
      await shows(page, 'The history has nothing of this project yet.');
      await checkAccessibility(page, 'a project without a history');
      await page.getByRole('textbox', { name: 'Project' }).fill('');
      await page.keyboard.press('Enter');
      await page.getByRole('region', { name: 'Table of 1 holding' }).waitFor();
      assert.equal(await page.getByRole('heading', { level: 2 }).count(), 0);
    };
    await withPage(browser, served.url, use, { colorScheme, viewport });
  });
}

test('the page of a host shows which consumers had it before, and why each ended', async (t) => {
  const browser = browserOf(t);
  if (browser === undefined) return;
  const consumer = randomUUID();
  await served.placement.allocations.set(consumer, {
    allocations: { [host]: { resources: { VCPU: 2 } } },
    project_id: team,
    user_id: 'grace',
    consumer_type: 'JOB',
    consumer_generation: null,
    name: 'job-8',
  });
  await served.placement.allocations.delete(consumer);
  const use = async (page: Page) => {
    await openView(page, served.url, `providers/${host}`);
    await page.getByText('Who had it before, in the last 24 hours').click();
    const row = page.getByRole('row', { name: `job-8 ${consumer}` });
    await row.waitFor();
    const cells = await row.locator('td').allInnerTexts();
    assert.deepEqual(cells.slice(0, 4), ['host-1', '2 VCPU', team, 'grace']);
    assert.equal(cells.at(-1), 'its release');
    await checkAccessibility(page, 'the past of a provider');
  };
  await withPage(browser, served.url, use);
});

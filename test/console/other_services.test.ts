/* The console of services that differ from that of the demo fleet: with Keystone, with an older version, with 10,000 hosts. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { sql } from 'kysely';
import { teamsPolicy } from '../../src/access/policy/teams.ts';
import { connect } from '../../src/client/index.ts';
import { flatHost } from '../bench/data_set.ts';
import { loadTrees } from '../bench/load_by_sql.ts';
import { settingsFor, withStandIn } from '../keystone/stand_in.ts';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, makeProvider, requestsTo } from '../support/requests.ts';
import { until } from '../support/until.ts';
import { quantile, tracedFrames } from './frames.ts';
import { checkAccessibility, giveToken, openView, withPage } from './pages.ts';
import { browserForTests, serve, shows } from './serving.ts';

const browserOf = browserForTests();

test('with Keystone the page requests another token after a wrong or expired one, and shows what the policy forbids', async (t) => {
  const browser = browserOf(t);
  if (browser === undefined) return;
  await withStandIn(async (standIn) => {
    const keystoneAuthtoken = { ...settingsFor(standIn), tokenCacheTime: -1 };
    const token = standIn.issue({ user: 'operator', roles: ['admin'] });
    const own = await serve(
      anyEngine,
      { api: { authStrategy: 'keystone' }, console: { enabled: true }, keystoneAuthtoken },
      token,
    );
    try {
      const { uuid, generation } = await own.placement.providers.create({ name: 'host-1' });
      const inventories = { VCPU: { total: 8 } };
      await own.placement.inventories.set(uuid, { inventories, resource_provider_generation: generation });
      await withPage(browser, own.url, async (page) => {
        await openView(page, own.url, 'fit', 'no-such-token');
        await page.locator('dialog .trouble').waitFor();
        await checkAccessibility(page, 'the dialog');
        await giveToken(page, token);
        await page.locator('.dot.live').waitFor();
        await page.getByLabel('Resource class 1').fill('VCPU');
        standIn.revoke(token);
        await page.getByRole('button', { name: 'Where does it fit?' }).click();
        await page.locator('dialog[open] .trouble').waitFor();
        assert.equal(await page.getByLabel('Resource class 1').inputValue(), 'VCPU');
        await giveToken(page, standIn.issue({ user: 'operator', roles: ['admin'] }));
        await shows(page, '8 can be claimed at the same time');
      });
      await withPage(browser, own.url, async (page) => {
        await openView(page, own.url, 'fleet', standIn.issue({ user: 'ada', roles: ['member'] }));
        await page.locator('.trouble.forbidden', { hasText: 'placement:provider_summaries:list' }).waitFor();
        assert.equal(await page.locator('canvas').count(), 0);
        for (const [link, rule] of [
          ['Changes', 'placement:changes:list'],
          ['Consumer', 'placement:consumers:list'],
          ['Holders', 'placement:holdings:list'],
          ['Waiting', 'placement:waiting:list'],
        ] as const) {
          await page.getByRole('link', { name: link }).click();
          await page.locator('.trouble.forbidden', { hasText: rule }).waitFor();
        }
      });
      await withPage(browser, own.url, async (page) => {
        const reader = standIn.issue({ user: 'ada', roles: ['reader'], project: 'vision' });
        await openView(page, own.url, 'waiting', reader);
        await page.locator('.trouble.forbidden', { hasText: 'placement:waiting:list' }).waitFor();
        await page.getByRole('textbox', { name: 'Project' }).fill('vision');
        await page.getByRole('button', { name: 'Find' }).click();
        await shows(page, 'No such claim waits.');
        await page.getByRole('link', { name: 'Holders' }).click();
        await page.locator('.trouble.forbidden', { hasText: 'placement:holdings:list' }).waitFor();
        await page.getByRole('textbox', { name: 'Project' }).fill('vision');
        await page.getByRole('button', { name: 'Find' }).click();
        await shows(page, 'No consumer holds this.');
      });
    } finally {
      await own.close();
    }
  });
});

test('a member of a team finds what its project has and waits for, on the pages of its consumers as well', async (t) => {
  const browser = browserOf(t);
  if (browser === undefined) return;
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-console-'));
  const policyFile = path.join(folder, 'policy.yaml');
  await writeFile(policyFile, teamsPolicy());
  const overrides = {
    api: { authStrategy: 'tokens' },
    console: { enabled: true },
    osloPolicy: { policyFile },
  } as const;
  const own = await serve(anyEngine, overrides, 'none');
  try {
    const operator = requestsTo({ app: own.service.operatorApp() }, 'placement 2.9');
    await makeProvider(operator, randomUUID(), { PGPU: { total: 1 } }, { name: 'gpu-1' });
    const made = await operator('POST', '/tokens', { user_id: 'ci', project_id: 'vision', roles: ['member'] });
    const token = String(at(accepted(made).json, 'token'));
    const [running, consumer] = [randomUUID(), randomUUID()];
    const claim = {
      candidates: { resources: { PGPU: 1 } },
      project_id: 'vision',
      user_id: 'ci',
      consumer_type: 'JOB',
      consumer_generation: null,
    };
    const member = connect({ endpoint: own.url, auth: token });
    await member.allocations.place(running, claim);
    const ended = assert.rejects(member.allocations.place(consumer, claim, { waitMs: 600_000 }));
    await until('it waits', async () => (await member.waiting.page({ project_id: 'vision' })).length === 1);
    await withPage(browser, own.url, async (page) => {
      await openView(page, own.url, `consumers/${running}`, token);
      await page.getByRole('row', { name: 'gpu-1 1 PGPU' }).waitFor();
      await openView(page, own.url, 'waiting?project=vision', token);
      await page.getByRole('link', { name: consumer }).click();
      await shows(page, 'It has nothing yet: its claim waits.');
      await openView(page, own.url, `consumers/${consumer}`, token);
      await page.locator('.trouble.forbidden', { hasText: 'Whether its claim waits is not for this user.' }).waitFor();
      await checkAccessibility(page, 'a consumer of which it is not known whether it waits');
      // The address names the project: it is asked at once, and what was refused before does not count any more.
      await page.evaluate(
        `history.pushState(null, '', '?project=vision'); dispatchEvent(new PopStateEvent('popstate'))`,
      );
      await page.getByText('It has nothing yet: its claim waits.').waitFor({ timeout: 10_000 });
      assert.equal(await page.locator('.trouble').count(), 0);
    });
    await member.waiting.remove(consumer);
    await ended;
  } finally {
    await own.close();
    await rm(folder, { recursive: true });
  }
});

test('where the service offers an older version, views that need a newer one say so', async (t) => {
  const browser = browserOf(t);
  if (browser === undefined) return;
  const old = await serve(anyEngine, { api: { authStrategy: 'noauth2', maxMicroversion: '2.2', host: '127.0.0.1' } });
  try {
    const uuid = randomUUID();
    await old.placement.providers.create({ uuid, name: 'host-1' });
    const inventories = { VCPU: { total: 8 } };
    await old.placement.inventories.set(uuid, { inventories, resource_provider_generation: 0 });
    await withPage(browser, old.url, async (page) => {
      await openView(page, old.url, 'fleet');
      await page.locator('canvas[data-cells="1"]').waitFor();
      await page.locator('.trouble.version', { hasText: '2.5' }).waitFor();
      await page.getByRole('link', { name: 'Changes' }).click();
      await page
        .locator('.trouble.version', {
          hasText: 'It needs microversion 2.5. The service offers versions up to 2.2',
        })
        .waitFor();
      await page.getByRole('link', { name: 'Holders' }).click();
      await page.locator('.trouble.version', { hasText: 'It needs microversion 2.9.' }).waitFor();
      await page.getByRole('link', { name: 'Waiting' }).click();
      await page.locator('.trouble.version', { hasText: 'It needs microversion 2.8.' }).waitFor();
      await page.getByRole('link', { name: 'Where does it fit?' }).click();
      await page.getByLabel('Resource class 1').fill('VCPU');
      await page.getByRole('button', { name: 'Where does it fit?' }).click();
      await page.locator('.candidates li').first().waitFor();
      await page.locator('.trouble.version', { hasText: '2.3' }).first().waitFor();
      await page.goto(`${old.url}/console/providers/${uuid}`);
      await giveToken(page, 'admin');
      await page.getByRole('heading', { level: 1, name: 'host-1' }).waitFor();
    });
  } finally {
    await old.close();
  }
});

test('a grid of 10,000 hosts in 313 racks shows all of them, and can be zoomed; the test reports the work for a frame', async (t) => {
  const browser = browserOf(t);
  if (browser === undefined) return;
  const many = await serve(anyEngine);
  try {
    const { kysely } = many.service.database;
    const query = async (text: string) => (await sql.raw<Record<string, unknown>>(text).execute(kysely)).rows;
    await loadTrees(query, [{ ...flatHost, populated: false }], 10_000);
    await query(`insert into placement_aggregates (created_at, uuid)
      select now(), gen_random_uuid()::text from generate_series(1, 313)`);
    await query(`insert into resource_provider_aggregates (created_at, resource_provider_id, aggregate_id)
      select now(), p.id, a.id from (select id, row_number() over (order by id) as n from resource_providers) p
        join (select id, row_number() over (order by id) as n from placement_aggregates) a on a.n = p.n % 313 + 1`);
    await withPage(browser, many.url, async (page) => {
      await openView(page, many.url, 'fleet?group=aggregate');
      const canvas = page.locator('canvas[data-cells="10000"]');
      await canvas.waitFor();
      const drawn = async () => Number(await canvas.getAttribute('data-drawn'));
      await until('each rack is a cell', async () => (await drawn()) === 313);
      const positions = page.locator('.position:visible');
      assert.equal(await positions.count(), 0);
      // A rack is opened by Enter: its hosts are cells, and bars show which part of the grid is seen.
      await canvas.focus();
      await page.keyboard.press('End');
      await page.getByText(/^32 root providers$|^31 root providers$/).waitFor();
      await page.keyboard.press('Enter');
      await until('hosts are cells', async () => (await drawn()) >= 31);
      await until('the position is seen', async () => (await positions.count()) === 2);
      const place = async () => (await positions.last().locator('span').boundingBox())?.y ?? Number.NaN;
      const before = await place();
      const { x = 0, y = 0 } = (await positions.last().boundingBox()) ?? {};
      await page.mouse.click(x + 4, y + 10);
      await until('the bar moves the grid', async () => (await place()) < before);
      await page.getByRole('button', { name: 'All' }).click();
      await until('each rack is a cell again', async () => (await drawn()) === 313);
      const frames = await tracedFrames(page);
      assert.ok(frames.length > 30, `${frames.length} frames`);
      t.diagnostic(`10,000 hosts: a frame while zooming takes ${quantile(frames, 0.5).toFixed(1)} ms of work (median)`);
    });
  } finally {
    await many.close();
  }
});

/* The texts of the console in the token dialog, for forbidden views, and where a part of the service is off. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { checkAccessibility, giveToken, openView, withPage } from './pages.ts';
import { browserForTests, type Served, serve, shows, viewTests } from './serving.ts';

const browserOf = browserForTests();
let served: Served;
before(async () => {
  served = await serve(anyEngine);
});
after(() => served.close());
const { testView } = viewTests(browserOf, () => served);

test('for a service that makes tokens itself the page names the command that makes one', async (t) => {
  const browser = browserOf(t);
  if (browser === undefined) return;
  const own = await serve(anyEngine, { api: { authStrategy: 'tokens' }, console: { enabled: true } }, 'none');
  try {
    await withPage(browser, own.url, async (page) => {
      await page.goto(`${own.url}/console/fleet`);
      await page.locator('dialog[open]').getByText('placement-manage token create').waitFor();
      assert.equal(await page.getByText('openstack').count(), 0);
    });
  } finally {
    await own.close();
  }
});

testView('the months of a project say that the history is off', 'holdings?project=vision', async (page) => {
  await page.getByText('This service keeps no history: it is off ([history] enabled).').waitFor();
});

testView('the defaults of limits are listed, and 0 of 0 is no part', 'limits', async (page) => {
  await page.getByText('There are none: a project without limits of its own has no limits.').waitFor();
  const { generation } = await served.placement.limits.showDefaults();
  await served.placement.limits.setDefaults({ resources: { VCPU: 0, MEMORY_MB: 65_536 }, generation });
  await openView(page, served.url, 'limits');
  const table = page.getByRole('region', { name: 'Table of default limits' });
  await table.getByRole('row', { name: 'MEMORY_MB 64 GiB' }).waitFor();
  await checkAccessibility(page, 'default limits');
  await page.getByRole('textbox', { name: 'Project', exact: true }).fill('vision');
  await page.keyboard.press('Enter');
  await page.getByRole('row', { name: 'VCPU 0 0 — default' }).waitFor();
  await page.keyboard.press('?');
  await page.getByText(/^are those of your time zone, \S+; months are those of UTC$/).waitFor();
});

testView(
  'a query says that there is nothing at all, and commands say what they need',
  'fit?resources=VCPU:1',
  async (page) => {
    await page.getByText('It fits nowhere: there is no tree.').first().waitFor();
    await page.getByText('The same by curl and command').click();
    await page.getByText(`export OS_ENDPOINT=${served.url} OS_TOKEN=…`).waitFor();
  },
);

testView(
  'few hosts are large enough for their names in a narrow window',
  'fleet',
  async (page) => {
    await page.getByText('placement provider create host-1').waitFor();
    const made = await Promise.all(
      Array.from({ length: 14 }, (_, number) => served.placement.providers.create({ name: `host${number}` })),
    );
    await page.locator('canvas[data-cells="14"]').waitFor();
    const canvas = page.locator('canvas.grid');
    await until('the grid is high', async () => ((await canvas.boundingBox())?.height ?? 0) > 250);
    await page.getByText('a tap chooses a provider').waitFor();
    for (const { uuid } of made) await served.placement.providers.delete(uuid);
  },
  { viewport: { width: 390, height: 800 } },
);

testView(
  'the help begins with its heading, also in a window that is too low for it',
  'limits',
  async (page) => {
    await page.locator('h1').waitFor();
    await page.getByRole('button', { name: 'Keys and words (?)' }).click();
    const dialog = page.getByRole('dialog', { name: 'Keys and words' });
    await dialog.getByRole('heading').waitFor();
    await until('the heading has the focus', async () => (await page.locator('h2:focus').count()) === 1);
    assert.equal(await dialog.evaluate((opened: { scrollTop: number }) => opened.scrollTop), 0);
    await checkAccessibility(page, 'the help in a low window');
  },
  { viewport: { width: 390, height: 700 } },
);

testView(
  'a class of which all is reserved is full in the list of inventories, as in the tree',
  'limits',
  async (page) => {
    const { uuid } = await served.placement.providers.create({ name: 'reserved' });
    const inventories = { VCPU: { total: 8, reserved: 8 } };
    await served.placement.inventories.set(uuid, { inventories, resource_provider_generation: 0 });
    await openView(page, served.url, `providers/${uuid}`);
    await page.locator('.tree').getByText('VCPU 100%').waitFor();
    await page.locator('.inventories').getByText('(100%)').waitFor();
    await served.placement.providers.delete(uuid);
  },
);

testView('what is forbidden is not being read', 'fleet', async (page) => {
  for (const view of ['fleet', 'aggregates', 'providers?name=a', 'aggregates/f81d4fae-7dec-11d0-a765-00a0c91e6bf6']) {
    await openView(page, served.url, view, 'ada:vision');
    await page.locator('.trouble.forbidden').first().waitFor();
    await page.getByText('Reading…').waitFor({ state: 'detached' });
  }
});

test('a token that no header can have is refused at once, and the next one is taken', async (t) => {
  const browser = browserOf(t);
  if (browser === undefined) return;
  await withPage(browser, served.url, async (page) => {
    await page.goto(`${served.url}/console/changes`);
    assert.equal(await page.getByText('Nothing has changed').count(), 0, 'without a token nothing is known');
    await giveToken(page, 'admin\u200b');
    await page.getByRole('alert').getByText('Only printable ASCII characters can be sent.').waitFor();
    await giveToken(page, 'admin');
    await page.locator('.dot.live').waitFor();
    await shows(page, /^Nothing has changed since/);
  });
});

testView('where changes may not be followed, nothing is said about them', 'limits', async (page) => {
  await openView(page, served.url, 'changes', 'ada:vision');
  await page.locator('.trouble.forbidden').waitFor();
  assert.equal(await page.getByText('Nothing has changed').count(), 0);
});

testView('UUIDs without hyphens, what is not copied, and pages after the last one', 'limits', async (page) => {
  const uuid = randomUUID();
  const aggregate = randomUUID();
  const short = (text: string) => text.replaceAll('-', '').toUpperCase();
  const inventories = { VCPU: { total: 8 } };
  await served.placement.providers.create({ uuid, name: 'hyphens' });
  await served.placement.inventories.set(uuid, { inventories, resource_provider_generation: 0 });
  await served.placement.aggregates.set(uuid, { aggregates: [aggregate], resource_provider_generation: 1 });
  await openView(page, served.url, `providers/${short(uuid)}`);
  await page.getByRole('heading', { level: 1, name: 'hyphens' }).waitFor();
  await until('the tab has the name', async () => (await page.title()) === 'hyphens · Provider · Placement');
  // Neither way to copy works.
  await page.evaluate('navigator.clipboard.writeText = () => Promise.reject(); document.execCommand = () => false');
  await page.getByRole('button', { name: 'Copy the UUID', exact: true }).click();
  await page.getByRole('button', { name: 'Not copied the UUID' }).waitFor();
  await page.locator('.copy:focus').waitFor();
  await openView(page, served.url, `aggregates/${short(aggregate)}`);
  await page.getByText('aggregate of 1 tree').waitFor();
  await openView(page, served.url, `providers/${uuid}?after=${uuid}`);
  await page.getByRole('link', { name: 'The first ones' }).click();
  await shows(page, 'Nothing is allocated here.');
  await openView(page, served.url, `consumers?project=none&after=${uuid}`);
  await page.getByRole('link', { name: 'The first ones' }).click();
  await page.waitForURL(`${served.url}/console/consumers?project=none`);
  await shows(page, 'There is no such consumer.');
  await served.placement.providers.delete(uuid);
});

testView('sums say that no provider has a name, and Find reads them again', 'holdings?sum=project', async (page) => {
  await shows(page, 'No consumer holds this.');
  const reads: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/holdings?')) reads.push(request.url());
  });
  await page.getByRole('button', { name: 'Find' }).click();
  await until('they are read again', () => reads.length > 0);
  await openView(page, served.url, 'holdings?sum=project&provider=nobody');
  await shows(page, 'No provider has this name.');
});

testView('an error of the service is shown with its control characters as codes', 'limits', async (page) => {
  const errors = [{ status: 409, title: 'Conflict', detail: 'of \u202eevil' }];
  await page.route(`${served.url}/limits/vision`, (route) => route.fulfill({ status: 409, json: { errors } }));
  await openView(page, served.url, 'limits/vision');
  await shows(page, 'of ‹U+202E›evil');
});

testView(
  'a time in the hour that comes twice, when summer time ends, has its offset',
  'limits',
  async (page) => {
    const consumer = randomUUID();
    const times = {
      created_at: '2026-10-25T00:30:00Z',
      updated_at: '2026-10-25T01:30:00Z',
      expires_at: '2026-10-25T02:30:00Z',
    };
    const ids = {
      uuid: consumer,
      name: null,
      project_id: 'vision',
      user_id: 'ada',
      consumer_type: 'JOB',
      consumer_generation: 1,
    };
    await page.route(`**/consumers/${consumer}`, (route) =>
      route.request().isNavigationRequest() ? route.continue() : route.fulfill({ json: { ...ids, ...times } }),
    );
    await openView(page, served.url, `consumers/${consumer}`);
    await page.locator('.facts').getByText('2026-10-25 02:30:00 GMT+2', { exact: true }).waitFor();
    await page.locator('.facts').getByText('2026-10-25 02:30:00 GMT+1', { exact: true }).waitFor();
    await page.locator('.facts').getByText('2026-10-25 03:30:00', { exact: true }).waitFor();
  },
  { timezoneId: 'Europe/Berlin' },
);

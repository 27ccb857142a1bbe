/* What the console says where a token is asked for, where something is forbidden, and where a part of the service is off. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { openView, withPage } from './pages.ts';
import { browserForTests, type Served, serve, viewTests } from './serving.ts';

const browserOf = browserForTests();
let served: Served;
before(async () => {
  served = await serve(anyEngine);
});
after(() => served.close());
const { testView } = viewTests(browserOf, () => served);

test('a service with tokens of its own says which command makes one', async (t) => {
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

testView('what is forbidden is not being read', 'fleet', async (page) => {
  for (const view of ['fleet', 'aggregates', 'providers?name=a', 'aggregates/f81d4fae-7dec-11d0-a765-00a0c91e6bf6']) {
    await openView(page, served.url, view, 'ada:vision');
    await page.locator('.trouble.forbidden').first().waitFor();
    await page.getByText('Reading…').waitFor({ state: 'detached' });
  }
});

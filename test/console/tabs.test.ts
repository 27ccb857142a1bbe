/* Several tabs on one service: those that are not seen leave the connections of the browser to the others, and catch up when they are seen. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { anyEngine } from '../support/engines.ts';
import { openView, withPage } from './pages.ts';
import { browserForTests, type Served, serve, viewTests } from './serving.ts';

const browserOf = browserForTests();
let served: Served;
before(async () => {
  served = await serve(anyEngine);
  await served.placement.providers.create({ name: 'old-name' });
});
after(() => served.close());
const { testView } = viewTests(browserOf, () => served);

/** A browser without a screen shows all its tabs, so the test says which of them are seen. */
const show = (page: Page, state: 'visible' | 'hidden') =>
  page.evaluate(
    `Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
     document.dispatchEvent(new Event('visibilitychange'))`,
  );

test('ten tabs behind another one do not keep it from its data', async (t) => {
  const browser = browserOf(t);
  if (browser === undefined) return;
  await withPage(browser, served.url, async (first) => {
    const pages = [first];
    for (let number = 0; number < 10; number++) {
      const page = pages.at(-1) ?? first;
      await openView(page, served.url, 'fleet?as=table');
      await page.getByRole('link', { name: 'old-name' }).waitFor({ timeout: 5_000 });
      await page.locator('.dot.live').waitFor({ timeout: 5_000 });
      await show(page, 'hidden');
      pages.push(await first.context().newPage());
    }
  });
});

testView(
  'a tab that is not seen does not follow, and has the newest state when it is seen again',
  'fleet?as=table',
  async (page) => {
    const polls: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/changes')) polls.push(request.url());
    });
    await page.locator('.dot.live').waitFor();
    await show(page, 'hidden');
    await page.locator('.dot.starting').waitFor({ state: 'attached' });
    polls.length = 0;
    const { uuid } = await served.placement.providers.create({ name: 'came-meanwhile' });
    await page.waitForTimeout(500);
    assert.deepEqual(polls, [], 'a hidden tab asks for no changes');
    assert.equal(await page.getByRole('link', { name: 'came-meanwhile' }).count(), 0);
    await show(page, 'visible');
    await page.getByRole('link', { name: 'came-meanwhile' }).waitFor({ timeout: 5_000 });
    await page.locator('.dot.live').waitFor({ timeout: 5_000 });
    await served.placement.providers.delete(uuid);
    await page.getByRole('link', { name: 'came-meanwhile' }).waitFor({ state: 'detached' });
    // Without any change it is live again at once.
    await show(page, 'hidden');
    await page.locator('.dot.starting').waitFor({ state: 'attached' });
    await show(page, 'visible');
    await page.locator('.dot.live').waitFor({ timeout: 5_000 });
  },
);

testView('a tab is not called live while an answer is late', 'fleet', async (page) => {
  await page.locator('.dot.live').waitFor();
  const { promise: goOn, resolve } = Promise.withResolvers<void>();
  await page.route('**/resource_classes*', async (route) => {
    await goOn;
    await route.continue();
  });
  await page.getByRole('link', { name: 'Where does it fit?' }).click();
  await page.locator('.dot.starting', { hasText: 'reading' }).waitFor();
  resolve();
  await page.locator('.dot.live').waitFor();
});

/*
 * Several tabs on one service: those that are not seen leave the connections of the browser to the others, and catch up when they are seen.
 * And answers that come late, or not at all.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { anyEngine } from '../support/engines.ts';
import { openView, rowOf, rows, withPage } from './pages.ts';
import { browserForTests, type Served, serve, viewTests } from './serving.ts';

const browserOf = browserForTests();
let served: Served;
before(async () => {
  served = await serve(anyEngine);
  await served.placement.providers.create({ name: 'old-name' });
});
after(() => served.close());
const { testView } = viewTests(browserOf, () => served);

/** Less than the 30 s after which a request for changes ends without any, and enough on a busy machine. */
const soonMs = 15_000;

/** A browser without a screen shows all its tabs, so the test says which of them are seen. */
const show = (page: Page, state: 'visible' | 'hidden') =>
  page.evaluate(
    `Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
     document.dispatchEvent(new Event('visibilitychange'))`,
  );

test('ten hidden tabs do not keep the shown tab from its data', async (t) => {
  const browser = browserOf(t);
  if (browser === undefined) return;
  await withPage(browser, served.url, async (first) => {
    const pages = [first];
    for (let number = 0; number < 10; number++) {
      const page = pages.at(-1) ?? first;
      await openView(page, served.url, 'fleet?as=table');
      await page.getByRole('link', { name: 'old-name' }).waitFor({ timeout: soonMs });
      await page.locator('.dot.live').waitFor({ timeout: soonMs });
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
    await page.getByRole('link', { name: 'came-meanwhile' }).waitFor({ timeout: soonMs });
    await page.locator('.dot.live').waitFor({ timeout: soonMs });
    await served.placement.providers.delete(uuid);
    await page.getByRole('link', { name: 'came-meanwhile' }).waitFor({ state: 'detached' });
    // Without any change it is live again at once.
    await show(page, 'hidden');
    await page.locator('.dot.starting').waitFor({ state: 'attached' });
    await show(page, 'visible');
    await page.locator('.dot.live').waitFor({ timeout: soonMs });
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

/** A host of its own for a test. */
async function makeHost(name: string): Promise<string> {
  const { uuid } = await served.placement.providers.create({ name });
  const inventories = { VCPU: { total: 8 } };
  await served.placement.inventories.set(uuid, { inventories, resource_provider_generation: 0 });
  return uuid;
}

const claim = (provider: string, consumer: string, VCPU: number, generation: number | null) =>
  served.placement.allocations.set(consumer, {
    allocations: { [provider]: { resources: { VCPU } } },
    project_id: 'vision',
    user_id: 'ada',
    consumer_type: 'JOB',
    consumer_generation: generation,
  });

/** Holds the next answer that is made for some requests, and then lets all pass. */
async function holdAnswer(page: Page, requests: RegExp) {
  const made = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  await page.route(requests, async (route) => {
    const response = await route.fetch();
    made.resolve();
    await goOn.promise;
    await route.fulfill({ response }).catch(() => {}); // the page may have aborted it
  });
  return { isMade: made.promise, letPass: goOn.resolve };
}

/** The next answer that tells the page of changes. */
const changesAnswer = (page: Page) => page.waitForResponse((response) => response.url().includes('/changes'));

testView('a view whose answers take longer than the time between changes shows them', 'limits', async (page) => {
  const host = await makeHost('busy');
  const consumer = randomUUID();
  await page.locator('.dot.live').waitFor();
  await page.route(/\/holdings/, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 600));
    await route.continue().catch(() => {}); // the view may have been left
  });
  let isChanging = true;
  const changing = (async () => {
    for (let generation = 0; isChanging; generation++) {
      await claim(host, consumer, 1 + (generation % 2), generation === 0 ? null : generation);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  try {
    await page.getByRole('link', { name: 'Holders' }).click();
    await rowOf(page, consumer).waitFor();
  } finally {
    isChanging = false;
    await changing;
  }
  await page.unrouteAll({ behavior: 'wait' });
});

testView('a provider shows what changed while its last answer was on its way', 'limits', async (page) => {
  const host = await makeHost('late');
  await openView(page, served.url, `providers/${host}`);
  await rows(page).first().waitFor();
  await page.locator('.dot.live').waitFor();
  const { isMade, letPass } = await holdAnswer(page, /provider_summaries\?.*in_tree/);
  const consumer = randomUUID();
  await claim(host, consumer, 1, null);
  await isMade;
  const isReported = changesAnswer(page);
  await claim(host, consumer, 7, 1);
  await isReported;
  letPass();
  await rowOf(page, 'VCPU').getByText('(88%)').waitFor();
});

testView('a deleted provider does not come back with an older answer', 'fleet?as=table', async (page) => {
  const host = await makeHost('ghost');
  const row = rowOf(page, 'ghost');
  await row.waitFor();
  await page.locator('.dot.live').waitFor();
  const { isMade, letPass } = await holdAnswer(page, /provider_summaries\?/);
  const inventories = { VCPU: { total: 9 } };
  await served.placement.inventories.set(host, { inventories, resource_provider_generation: 1 });
  await isMade;
  await served.placement.providers.delete(host);
  await row.waitFor({ state: 'detached' });
  letPass();
  await makeHost('after the ghost');
  await rowOf(page, 'after the ghost').waitFor();
  assert.equal(await page.getByRole('link', { name: 'ghost', exact: true }).count(), 0);
});

testView('the fleet is right again after a read that failed, and says so', 'fleet?as=table', async (page) => {
  const host = await makeHost('unlucky');
  await rowOf(page, 'unlucky').waitFor();
  await page.locator('.dot.live').waitFor();
  await page.route(/provider_summaries\?/, (route) => route.fulfill({ status: 500, body: 'no' }), { times: 1 });
  await claim(host, randomUUID(), 7, null);
  await page.getByText('The fleet could not be read.').waitFor();
  await rowOf(page, 'unlucky').getByText('88%').waitFor();
  await page.getByText('The fleet could not be read.').waitFor({ state: 'detached' });
});

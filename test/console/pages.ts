import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

// It is read without `await`. Several test files share a process: with an `await` here all tests would be counted for the first file.
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The rows of the tables of a page. */
export const rows = (page: Page) => page.locator('tbody tr');

/** The first row of a table that has a text in its heading. */
export const rowOf = (page: Page, text: string) =>
  rows(page)
    .filter({ has: page.locator('th', { hasText: text }) })
    .first();

/** The button with exactly this name. */
export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** Faults of a page. */
type Faults = string[];

/**
 * Calls back with a page of a fresh browser profile. Afterwards it checks that the page sent requests to its service
 * only, had no script errors, violated no policy, and stored nothing: no cookies and no storage.
 *
 * @param options.width the width of the window
 */
export async function withPage<T>(
  browser: Browser,
  serviceUrl: string,
  use: (page: Page) => Promise<T>,
  options: BrowserContextOptions = {},
): Promise<T> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    const faults: Faults = [];
    page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
    page.on('console', (message) => {
      if (/Content.Security.Policy|TrustedHTML|trusted/i.test(message.text())) faults.push(`policy: ${message.text()}`);
    });
    page.on('request', (request) => {
      if (new URL(request.url()).origin !== new URL(serviceUrl).origin) faults.push(`request to ${request.url()}`);
    });
    const result = await use(page);
    assert.deepEqual(faults, []);
    assert.deepEqual(await context.cookies(), []);
    assert.equal(await page.evaluate('localStorage.length + sessionStorage.length'), 0);
    return result;
  } finally {
    await context.close();
  }
}

/** Opens a view, and enters the token. */
export async function openView(page: Page, serviceUrl: string, view: string, token = 'admin'): Promise<void> {
  await page.goto(`${serviceUrl}/console/${view}`);
  await giveToken(page, token);
}

/** Enters the token in its dialog. */
export async function giveToken(page: Page, token: string): Promise<void> {
  const field = page.locator('dialog[open] input');
  await field.fill(token);
  await page.locator('dialog[open] button').click();
}

type Violation = { readonly id: string; readonly nodes: readonly { readonly html: string }[] };

/** Checks the present page for faults of accessibility: by keyboard, by screen reader, and of colours. */
export async function checkAccessibility(page: Page, what: string): Promise<void> {
  // The debugger of the browser evaluates it; the policy of the page does not apply there.
  await page.evaluate(axeSource);
  const violations = await page.evaluate<readonly Violation[]>(
    "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })" +
      '.then(({ violations }) => violations)',
  );
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`);
  assert.deepEqual(found, [], what);
}

/** Goes to every view, and checks each for faults of accessibility. */
export async function checkViews(
  page: Page,
  { provider, consumer, project }: Readonly<Record<'provider' | 'consumer' | 'project', string>>,
): Promise<void> {
  const go = async (view: string, shown: string) => {
    await page.evaluate(
      `history.pushState(null, '', '/console/${view}'); dispatchEvent(new PopStateEvent('popstate'))`,
    );
    await page.locator(shown).first().waitFor();
    await checkAccessibility(page, view);
  };
  await go('fleet?group=aggregate', 'canvas[data-cells]:not([data-cells="0"])');
  await go('fleet?as=table', 'tbody tr');
  await go('aggregates', 'tbody tr');
  await go(`providers/${provider}`, '.inventories tbody tr');
  await go('consumers', 'tbody tr');
  await go(`consumers/${consumer}`, 'tbody tr');
  await go('limits', 'tbody tr');
  await go(`limits/${project}`, 'tbody tr');
  await go('holdings', 'tbody tr');
  await go('waiting', 'tbody tr');
  const query = 'resources=VCPU:9999&required=HW_CPU_X86_AVX2&resources_1=PGPU:1&group_policy=none';
  await go(`fit?${query}`, '.funnel tbody tr');
  await go('changes', '.rates');
}

/* The grid and the controls of the console, with fleets and colours that are hard to show. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { anyEngine } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { openView, withPage } from './pages.ts';
import { browserForTests, type Served, serve, viewTests } from './serving.ts';

const browserOf = browserForTests();
const [empty, without, nested, device] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
/** It has no place to break a line. */
const longName = `node_${'with_a_very_long_name_'.repeat(8)}1`;

let served: Served;
before(async () => {
  served = await serve(anyEngine);
  const { placement } = served;
  const make = async (uuid: string, name: string, inventories: object, parent?: string) => {
    await placement.providers.create({ uuid, name, parent_provider_uuid: parent });
    if (Object.keys(inventories).length === 0) return;
    await placement.inventories.set(uuid, {
      inventories: inventories as Record<string, { total: number }>, // the calls below
      resource_provider_generation: 0,
    });
  };
  await make(empty, 'host-empty', { VCPU: { total: 8 }, MEMORY_MB: { total: 393_216 } });
  await make(without, longName, { MEMORY_MB: { total: 1024 } });
  await make(nested, 'host-with-device', { VCPU: { total: 8 } });
  await make(device, 'accelerator-0', { PGPU: { total: 1 } }, nested);
  await placement.resourceClasses.ensure('CUSTOM_LICENCE');
  // Pools of licences: more of them than hosts.
  for (let number = 0; number < 5; number++) {
    const uuid = randomUUID();
    await make(uuid, `licences-${number}`, { CUSTOM_LICENCE: { total: 50 } });
    await placement.providerTraits.set(uuid, {
      traits: ['MISC_SHARES_VIA_AGGREGATE'],
      resource_provider_generation: 1,
    });
  }
});
after(() => served.close());

const { testView } = viewTests(browserOf, () => served);

/** The red, green and blue of a computed colour. */
const channelsOf = (colour: string): readonly number[] => (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);

/** The relative luminance of WCAG 2. */
function luminanceOf(channels: readonly number[]): number {
  const [red = 0, green = 0, blue = 0] = channels.map((each) => {
    const part = each / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** The contrast ratio of WCAG 2. */
function contrastOf(one: readonly number[], other: readonly number[]): number {
  const [dark = 0, light = 0] = [luminanceOf(one), luminanceOf(other)].toSorted((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** A computed style of the first element that a selector matches. */
const styleOf = (page: Page, selector: string, property: string, pseudo = ''): Promise<string> =>
  page.evaluate<string>(
    `getComputedStyle(document.querySelector('${selector}'), '${pseudo}').getPropertyValue('${property}')`,
  );

for (const colorScheme of ['light', 'dark'] as const) {
  testView(
    `a pressed button is readable also under the mouse, ${colorScheme}`,
    'fleet',
    async (page) => {
      await page.locator('canvas[data-cells="8"]').waitFor();
      const button = page.getByRole('button', { name: 'Grid', pressed: true });
      await button.hover();
      const pressed = '.switch button[aria-pressed="true"]';
      const [ink, surface] = [await styleOf(page, pressed, 'color'), await styleOf(page, pressed, 'background-color')];
      const ratio = contrastOf(channelsOf(ink), channelsOf(surface));
      assert.ok(ratio >= 4.5, `${ratio.toFixed(2)}:1`);
    },
    { colorScheme },
  );

  testView(
    `a provider that has none does not look like an empty one, ${colorScheme}`,
    'fleet?class=VCPU',
    async (page) => {
      await page.locator('canvas[data-cells="8"]').waitFor();
      await until('the cells are drawn', async () => (await page.locator('canvas').getAttribute('data-drawn')) === '8');
      // The cells are in the order of names: the empty host is the first, the one without VCPU the third.
      const row = await page.evaluate<readonly number[]>(
        "(([canvas]) => [...canvas.getContext('2d').getImageData(0, 30, canvas.width, 1).data])(document.querySelectorAll('canvas'))",
      );
      const pixels = Array.from({ length: row.length / 4 }, (_, x) => row.slice(4 * x, 4 * x + 3));
      const first = pixels[30] ?? assert.fail();
      const end = pixels.findIndex((pixel, x) => x > 30 && pixel.join() !== first.join());
      const ratios = pixels.slice(2 * end).map((pixel) => contrastOf(pixel, first));
      assert.ok(Math.max(...ratios) >= 3, `${Math.max(...ratios).toFixed(2)}:1`);
      await page.getByText(/6 have none \(hollow\)/).waitFor();
    },
    { colorScheme },
  );
}

testView(
  'forced colours keep which button is pressed, which view is shown and whether it is live',
  'fleet',
  async (page) => {
    await page.locator('.dot.live').waitFor();
    const pressed = await styleOf(page, '.switch button[aria-pressed="true"]', 'background-color');
    assert.notEqual(pressed, await styleOf(page, '.switch button[aria-pressed="false"]', 'background-color'));
    const current = await styleOf(page, 'nav a[aria-current="page"]', 'border-bottom-width');
    assert.notEqual(current, await styleOf(page, 'nav a:not([aria-current])', 'border-bottom-width'));
    assert.notEqual(
      await styleOf(page, 'nav a[aria-current="page"]', 'border-bottom-color'),
      await styleOf(page, 'nav a:not([aria-current])', 'border-bottom-color'),
    );
    assert.notEqual(
      await styleOf(page, '.dot.live', 'background-color', '::before'),
      await styleOf(page, '.state', 'background-color'),
    );
  },
  { forcedColors: 'active' },
);

test('Escape does not close the dialog for the token, however often it is pressed', async (t) => {
  const browser = browserOf(t);
  if (browser === undefined) return;
  await withPage(browser, served.url, async (page) => {
    await page.goto(`${served.url}/console/fleet`);
    await page.locator('dialog[open] input').waitFor();
    for (let press = 0; press < 4; press++) await page.keyboard.press('Escape');
    await page.locator('dialog[open] input').fill('admin');
    await page.locator('dialog[open] button').click();
    await page.locator('canvas[data-cells="8"]').waitFor();
  });
});

testView('pools are a group of their own, and the fleet opens with a class of hosts', 'fleet', async (page) => {
  await page.locator('canvas[data-cells="8"]').waitFor();
  assert.equal(await page.getByRole('combobox', { name: 'Class', exact: true }).inputValue(), 'VCPU');
  assert.match((await page.locator('canvas').getAttribute('aria-label')) ?? '', /8 providers in 2 groups/);
});

testView('a search finds a tree by the name of any provider in it', 'fleet', async (page) => {
  await page.locator('canvas[data-cells="8"]').waitFor();
  for (const text of ['CELERATOR', device.slice(3, 20)]) {
    await page.getByLabel('Search').fill(text);
    await page.getByText('8 root providers, 1 found').waitFor();
  }
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'host-with-device' }).waitFor();
});

testView(
  'Enter goes from one match to the next, also to trees of several groups',
  'fleet?group=aggregate',
  async (page) => {
    const { placement } = served;
    const [one, two] = [randomUUID(), randomUUID()];
    const made: string[] = [];
    for (const aggregates of [[one, two], [one, two], [two]]) {
      const { uuid } = await placement.providers.create({ name: `match-${made.length}` });
      await placement.aggregates.set(uuid, { aggregates, resource_provider_generation: 0 });
      made.push(uuid);
    }
    await page.locator('canvas[data-cells="13"]').waitFor();
    const search = page.getByLabel('Search');
    await search.fill('match-');
    for (const index of [0, 1, 2, 0]) {
      await page.keyboard.press('Enter');
      await page
        .locator('.fleet-side')
        .getByRole('link', { name: `match-${index}` })
        .waitFor();
    }
    assert.match((await search.getAttribute('placeholder')) ?? '', /Enter/);
    await page.getByRole('button', { name: 'Table' }).click();
    assert.equal(await search.getAttribute('placeholder'), 'part of a name or UUID');
    for (const uuid of made) await placement.providers.delete(uuid);
  },
);

testView('the URL has what was chosen, the order and the page', 'fleet', async (page) => {
  await page.locator('canvas[data-cells="8"]').waitFor();
  await page.locator('canvas').focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForURL(/chosen=/);
  const chosen = new URL(page.url()).searchParams.get('chosen');
  assert.equal(chosen, empty);
  await openView(page, served.url, `fleet?chosen=${without}`);
  await page.locator('.fleet-side').getByRole('link', { name: longName }).waitFor();
  await page.getByRole('button', { name: 'Table' }).click();
  await page.getByRole('button', { name: 'provider', exact: true }).click();
  await page.waitForURL(/sort=name/);
  const first = () => page.locator('tbody th').first().innerText();
  await until('the first name is first', async () => (await first()) === 'host-empty');
  const { pathname, search } = new URL(page.url());
  await openView(page, served.url, (pathname + search).replace('/console/', ''));
  await until('it is first again', async () => (await first()) === 'host-empty');
  assert.match(page.url(), new RegExp(`chosen=${without}`));
});

/** A function of a page: the grid gets a key. */
const press = `const press = (key) =>
  document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));`;

testView('a key that is pressed when the URL has just got what was chosen is not lost', 'fleet', async (page) => {
  await page.locator('canvas[data-cells="8"]').waitFor();
  // The second key comes before the next paint.
  await page.evaluate(`{
    ${press}
    const replace = history.replaceState.bind(history);
    history.replaceState = (...values) => {
      history.replaceState = replace;
      replace(...values);
      setTimeout(() => press('End'));
    };
    press('Home');
  }`);
  const chosen = () => new URL(page.url()).searchParams.get('chosen');
  await until('the URL has the first provider', () => chosen() === empty);
  await until('the URL has another provider', () => chosen() !== empty);
  await page.locator('.chosen-bar', { hasText: 'licences-4' }).waitFor({ state: 'attached' });
});

testView('a provider that is opened at once stays open, also on a slow machine', 'fleet', async (page) => {
  await page.locator('canvas[data-cells="8"]').waitFor();
  // What the key does takes so long that the URL of the fleet is due to get what was chosen.
  await page.evaluate(`{
    ${press}
    press('Home');
    setTimeout(() => {
      press('Enter');
      for (const end = performance.now() + 400; performance.now() < end; );
    }, 100);
  }`);
  await page.getByRole('heading', { level: 1, name: 'host-empty' }).waitFor();
  await page.waitForTimeout(300);
  assert.equal(page.url(), `${served.url}/console/providers/${empty}`);
});

testView('amounts have units, and the exact number as their title', 'fleet?as=table&class=MEMORY_MB', async (page) => {
  const row = page.locator('tbody tr', { hasText: 'host-empty' });
  await row.getByTitle('393,216 MEMORY_MB').first().waitFor();
  assert.equal(await row.getByTitle('393,216 MEMORY_MB').first().innerText(), '384 GiB');
});

for (const width of [1280, 390]) {
  testView(
    `a long name leaves the numbers beside it in sight, ${width} pixels`,
    'fleet?as=table&class=MEMORY_MB',
    async (page) => {
      const row = page.locator('tbody tr', { hasText: longName });
      await row.waitFor();
      const box = (await row.locator('td.number').first().boundingBox()) ?? assert.fail();
      const end = box.x + box.width;
      assert.ok(end <= width, `how full it is ends at ${end} pixels`);
    },
    { viewport: { width, height: 800 } },
  );
}

testView(
  'in a narrow window what was chosen is described where it is seen',
  'fleet',
  async (page) => {
    await page.locator('canvas[data-cells="8"]').waitFor();
    await page.locator('canvas').focus();
    await page.keyboard.press('ArrowRight');
    const links = page.getByRole('link', { name: 'host-empty' });
    await links.first().waitFor();
    const boxes = await Promise.all((await links.all()).map((link) => link.boundingBox()));
    const ends = boxes.map((box) => (box === null ? Number.NaN : box.y + box.height));
    assert.ok(
      ends.some((end) => end > 0 && end <= 400),
      `they end at ${ends} pixels`,
    );
  },
  { viewport: { width: 390, height: 400 } },
);

testView(
  'in a narrow window the table that comes instead of the grid is no higher than its rows',
  'fleet',
  async (page) => {
    await page.locator('canvas[data-cells]:not([data-cells="0"])').waitFor();
    const height = () => page.evaluate<number>('document.documentElement.scrollHeight');
    await page.getByRole('button', { name: 'Table' }).click();
    await page.locator('tbody tr').first().waitFor();
    const afterGrid = await height();
    assert.equal(await page.getByText('a tap chooses a provider').count(), 0);
    await openView(page, served.url, 'fleet?as=table');
    await page.locator('tbody tr').first().waitFor();
    assert.equal(afterGrid, await height());
  },
  { viewport: { width: 390, height: 400 } },
);

testView('a copied UUID is found with blanks around it, and without hyphens', 'fleet', async (page) => {
  const search = page.getByRole('searchbox', { name: 'Search' });
  for (const text of [` ${empty}\t`, empty.replaceAll('-', '').toUpperCase(), ' HOST-empty ']) {
    await search.fill(text);
    await page.getByText('8 root providers, 1 found').waitFor();
  }
});

/* Colours: texts are read well on the cells of the grid, drawings have the colours that the system forces, and hollow cells are alike. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { contrast, dark, forced, light, rgbOf } from '../../console/fleet/palettes.ts';
import { anyEngine } from '../support/engines.ts';
import { browserForTests, type Served, serve, viewTests } from './serving.ts';

const browserOf = browserForTests();
let served: Served;
before(async () => {
  served = await serve(anyEngine);
  const { placement } = served;
  const host = await placement.providers.create({ name: 'host1' });
  const inventories = { VCPU: { total: 64 } };
  await placement.inventories.set(host.uuid, { inventories, resource_provider_generation: 0 });
  for (let number = 0; number < 8; number++) {
    const pool = await placement.providers.create({ name: `pool0${number}` });
    await placement.providerTraits.set(pool.uuid, {
      traits: ['MISC_SHARES_VIA_AGGREGATE'],
      resource_provider_generation: 0,
    });
  }
  await Promise.all(
    Array.from({ length: 300 }, (_, number) => placement.providers.create({ name: `hollow${number}` })),
  );
});
after(() => served.close());
const { testView } = viewTests(browserOf, () => served);

const system = {
  Canvas: 'rgb(0, 0, 0)',
  CanvasText: 'rgb(255, 255, 255)',
  Highlight: 'rgb(26, 235, 255)',
  HighlightText: 'rgb(0, 0, 0)',
  GrayText: 'rgb(63, 242, 63)',
};

for (const [name, palette] of [
  ['light', light],
  ['dark', dark],
  ['forced', forced(system)],
] as const) {
  test(`a text is read well on every cell, ${name}`, () => {
    const { over, overInk, near, nearInk, drained, drainedInk } = palette;
    const steps = palette.steps.map((step, index) => [step, palette.inks[index] ?? ''] as const);
    for (const [colour, ink] of [...steps, [over, overInk], [near, nearInk], [drained, drainedInk]] as const) {
      const found = contrast(rgbOf(colour), rgbOf(ink));
      assert.ok(found >= 4.5, `${ink} on ${colour}: ${found}`);
    }
    const [empty = ''] = palette.steps;
    assert.ok(contrast(rgbOf(empty), rgbOf(palette.background)) >= 1.35, 'an empty cell is seen');
  });
}

testView(
  'drawings have the colours that the system forces',
  'fleet',
  async (page) => {
    await page.locator('canvas[data-cells="309"]').waitFor();
    const found = await page.evaluate<readonly (readonly string[])[]>(`(() => {
      const probe = document.createElement('span');
      document.body.append(probe);
      const read = (name) => { probe.style.color = name; return getComputedStyle(probe).color; };
      const { data } = document.querySelector('canvas.grid').getContext('2d').getImageData(0, 0, 1, 1);
      const fillOf = (selector) => getComputedStyle(document.querySelector(selector)).fill;
      return [
        ['rgb(' + [...data.slice(0, 3)].join(', ') + ')', read('Canvas')],
        [fillOf('.bar .rail'), read('Canvas')],
        [fillOf('.bar .fill'), read('CanvasText')],
      ];
    })()`);
    for (const [is, expected] of found) assert.equal(is, expected);
  },
  { forcedColors: 'active', colorScheme: 'light' },
);

/** The widths of the shapes of one colour that the grid has, in pixels. */
const shapesOf = (page: Page, colour: string): Promise<readonly number[]> =>
  page.evaluate(`(() => {
    const canvas = document.querySelector('canvas.grid');
    const { width, height } = canvas;
    const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
    const isOf = (at) => [${rgbOf(colour).join()}].every((value, place) => data[4 * at + place] === value);
    const seen = new Set();
    const widths = [];
    for (let start = 0; start < width * height; start++) {
      if (seen.has(start) || !isOf(start)) continue;
      const open = [start];
      seen.add(start);
      let [left, right] = [width, 0];
      while (open.length > 0) {
        const at = open.pop();
        left = Math.min(left, at % width);
        right = Math.max(right, at % width);
        for (const next of [at - 1, at + 1, at - width, at + width]) {
          if (!seen.has(next) && isOf(next)) { seen.add(next); open.push(next); }
        }
      }
      // The edge of the grid cuts a shape.
      if (left > 0 && right < width - 1) widths.push(right - left + 1);
    }
    return widths;
  })()`);

testView('hollow cells are alike, at every size', 'fleet?class=VCPU', async (page) => {
  await page.locator('canvas[data-cells="309"]').waitFor();
  // In a narrow window so many cells are small.
  await page.setViewportSize({ width: 390, height: 900 });
  await page.waitForTimeout(200);
  const sizes = new Set<number>();
  const box = (await page.locator('canvas.grid').boundingBox()) ?? assert.fail('there is a grid');
  await page.mouse.move(box.x + 5, box.y + 5);
  for (let step = 0; step < 30; step++) {
    const widths = await shapesOf(page, light.none);
    assert.ok(Math.max(...widths) - Math.min(...widths) <= 2, `${widths}`);
    for (const width of widths) sizes.add(width);
    await page.mouse.wheel(0, -12);
    await page.waitForTimeout(40);
  }
  assert.ok([...sizes].some((size) => size < 10) && [...sizes].some((size) => size > 18), 'dots, and then frames');
});

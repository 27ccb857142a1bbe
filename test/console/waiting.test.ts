/* Claims that wait: on the page of their consumer, in narrow windows, in words, and as a file. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { after, before } from 'node:test';
import { ApiError } from '../../src/client/index.ts';
import { anyEngine } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { checkAccessibility } from './pages.ts';
import { browserForTests, type Served, serve, viewTests } from './serving.ts';

const browserOf = browserForTests();
const host = randomUUID();
const [first, second] = [randomUUID(), randomUUID()];
let ended: readonly Promise<unknown>[];

let served: Served;
before(async () => {
  served = await serve(anyEngine);
  const { placement } = served;
  await placement.providers.create({ uuid: host, name: 'rack7-host1' });
  await placement.inventories.set(host, { inventories: { VCPU: { total: 2 } }, resource_provider_generation: 0 });
  const other = await placement.providers.create({ name: 'rack7-host2' });
  await placement.inventories.set(other.uuid, { inventories: { VCPU: { total: 8 } }, resource_provider_generation: 0 });
  const wait = async (consumer: string, name: string) => {
    const claim = {
      candidates: { resources: { VCPU: 4 }, in_tree: host },
      project_id: 'vision',
      user_id: 'ada',
      consumer_type: 'JOB',
      consumer_generation: null,
      name,
    };
    const end = placement.allocations
      .place(consumer, claim, { waitMs: 600_000, line: 'gpu' })
      .catch((error: unknown) => (error instanceof ApiError ? error : Promise.reject(error)));
    await until('it waits', async () =>
      (await placement.waiting.page()).some(({ consumers }) => consumers[0] === consumer),
    );
    return end;
  };
  ended = [wait(first, 'train-1')];
  await until('the first one waits', async () => (await placement.waiting.page()).length === 1);
  ended = [...ended, wait(second, 'train-2')];
  await until('both wait', async () => (await placement.waiting.page()).length === 2);
});
after(async () => {
  for (const consumer of [first, second]) await served.placement.waiting.remove(consumer).catch(() => {});
  await Promise.all(ended);
  await served.close();
});

const { testView } = viewTests(browserOf, () => served);

testView(
  'a waiting claim names the tree it asks for, and what is before it; the table is saved',
  'waiting',
  async (page) => {
    const condition = (name: string) => page.locator('tbody tr', { hasText: name }).locator('.condition');
    await condition('train-2')
      .getByText(/^its turn: 1 claim before it in its line; when it was tried: no tree/)
      .waitFor();
    await condition('train-1').getByText('in_tree=rack7-host1').waitFor();
    assert.doesNotMatch(await condition('train-1').innerText(), /No allocation candidates/);
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save as CSV' }).click();
    const lines = (await readFile(await (await saving).path(), 'utf8')).trim().split('\n');
    assert.equal(lines[0], 'consumer,name,project,user,line,place,waits for,condition,since,until');
    assert.match(lines[2] ?? '', new RegExp(`^${second},train-2,vision,ada,gpu,2,line,its turn`));
  },
);

testView(
  'where the answer to the end of a wait is lost, the page does not say that it goes on',
  'waiting',
  async (page) => {
    const end = async (status: number | undefined, said: string) => {
      await page.route('**/waiting/**', (route) =>
        status === undefined
          ? route.abort()
          : route.fulfill({ status, json: { errors: [{ status, detail: 'it is so' }] } }),
      );
      await page.getByRole('button', { name: /^End the wait of train-1/ }).click();
      await page.getByRole('button', { name: 'End the wait', exact: true }).click();
      await page.locator('dialog[open] .trouble').getByText(said).waitFor();
      await page.keyboard.press('Escape');
      await page.unroute('**/waiting/**');
    };
    await end(undefined, 'It is not known whether the wait was ended.');
    await end(504, 'It is not known whether the wait was ended.');
    await end(403, 'The wait was not ended.');
  },
);

for (const width of [390, 800]) {
  testView(
    `a window of ${width} pixels shows all of a waiting claim, and does not scroll sideways`,
    'waiting',
    async (page) => {
      const row = page.locator('tbody tr', { hasText: 'train-2' });
      for (const part of [row.locator('.condition'), row.getByRole('button', { name: /^End the wait/ })]) {
        const box = await part.boundingBox();
        assert.ok(box !== null && box.x >= 0 && box.x + box.width <= width, JSON.stringify(box));
      }
      assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth')) <= width);
      await checkAccessibility(page, `waiting claims in ${width} pixels`);
    },
    { viewport: { width, height: 800 } },
  );
}

testView(
  'the page of a consumer whose claim waits says so, until it has something',
  `consumers/${second}`,
  async (page) => {
    await page.getByRole('heading', { level: 1, name: 'train-2' }).waitFor();
    await page.getByText('It has nothing yet: its claim waits.').waitFor();
    assert.equal(await page.getByText('It does not exist').count(), 0);
    assert.equal(await page.getByText('It has nothing (any more).').count(), 0);
    await page.locator('tbody td', { hasText: 'its turn' }).waitFor();
    await checkAccessibility(page, 'a consumer that waits');
    await served.placement.waiting.remove(first);
    const inventories = { VCPU: { total: 4 } };
    await served.placement.inventories.set(host, { inventories, resource_provider_generation: 1 });
    await page.getByRole('cell', { name: '4 VCPU' }).waitFor();
    await page.getByText('It has nothing yet').waitFor({ state: 'detached' });
    await page.locator('.facts').getByText('vision').waitFor();
  },
);

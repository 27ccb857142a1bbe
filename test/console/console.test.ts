/*
 * The console in a real browser. All tests share one browser. Each test has a profile of its own;
 * its page must send no request to another host, must not violate its policy, and must store nothing.
 */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import type { Page } from 'playwright-core';
import { amountText, exactText } from '../../console/text.ts';
import { ApiError } from '../../src/client/index.ts';
import { fillDemo } from '../../src/demo/fill.ts';
import { liveDemo } from '../../src/demo/live.ts';
import { anyEngine } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { checkAccessibility, checkViews, giveToken, openView, rowOf } from './pages.ts';
import { browserForTests, type Served, serve, shows, viewTests } from './serving.ts';

const hosts = 40;
const textOf = async (page: Page, selector: string): Promise<string> =>
  (await page.locator(selector).first().innerText()).trim();

const browserOf = browserForTests();

suite('the console', () => {
  let served: Served;
  let consumers: readonly string[];
  before(async () => {
    served = await serve(anyEngine);
    ({ consumers } = await fillDemo(served.placement, hosts, () => {}));
  });
  after(async () => {
    await served.close();
  });

  const { onView } = viewTests(browserOf, () => served);

  test('the fleet has a cell for each root provider, the table the same amounts as the service, and both follow claims', (t) =>
    onView(t, 'fleet?class=MEMORY_MB', async (page) => {
      const all = await served.placement.providerSummaries.page({ limit: 10_000 });
      const roots = all.filter(({ uuid, root_provider_uuid }) => uuid === root_provider_uuid);
      await page.locator(`canvas[data-cells="${roots.length}"]`).waitFor();
      // Racks are aggregates; a pool is in several of them, and shown once, apart from the hosts.
      await page.getByRole('combobox', { name: 'Groups' }).selectOption('aggregate');
      const pools = roots.filter(({ name }) => name.startsWith('pool')).length;
      const inRacks = roots.reduce(
        (sum, { name, aggregates }) => sum + (name.startsWith('pool') ? 0 : aggregates.length),
        pools,
      );
      await page.locator(`canvas[data-cells="${inRacks}"]`).waitFor();
      assert.match(page.url(), /class=MEMORY_MB&group=aggregate/);
      await page.getByRole('combobox', { name: 'Groups' }).selectOption('');
      await page.getByLabel('Search').fill('rack01-host');
      await shows(page, /32 found/);

      const host = roots.find(
        ({ inventories, name }) => inventories.MEMORY_MB !== undefined && name.startsWith('rack01'),
      );
      assert.ok(host);
      await page.getByLabel('Search').fill(host.name);
      await page.getByRole('button', { name: 'Table' }).click();
      const usedCell = rowOf(page, host.name).locator('td.number').nth(1);
      const used = host.usages.MEMORY_MB ?? 0;
      assert.equal(await usedCell.innerText(), amountText('MEMORY_MB', used));
      const [consumer] = Object.keys((await served.placement.providers.allocations(host.uuid)).allocations);
      assert.ok(consumer);
      const { allocations } = await served.placement.allocations.show(consumer);
      const amount = allocations[host.uuid]?.resources.MEMORY_MB ?? 0;
      await served.placement.allocations.delete(consumer);
      await rowOf(page, host.name)
        .getByTitle(exactText('MEMORY_MB', used - amount))
        .first()
        .waitFor();
      // The URL opens the same view again.
      const { pathname, search } = new URL(page.url());
      await openView(page, served.url, (pathname + search).replace('/console/', ''));
      await rowOf(page, host.name).waitFor();
    }));

  test('a provider shows its tree, inventories, traits and consumers, and a consumer what it has', (t) =>
    onView(t, 'providers', async (page) => {
      const { placement } = served;
      // The demo places its consumers at random: some nodes have none.
      let [node, consumer]: (string | undefined)[] = [];
      for (const gpu of await placement.providers.list({ required: ['CUSTOM_GPU_A100'] })) {
        node = gpu.parent_provider_uuid ?? assert.fail('a GPU belongs to a node');
        [consumer] = Object.keys((await placement.providers.allocations(node)).allocations);
        if (consumer !== undefined) break;
      }
      assert.ok(node !== undefined && consumer !== undefined, 'the demo has placed a consumer on a node with a GPU');
      const tree = await placement.providerSummaries.page({ in_tree: node });
      const { name, inventories, usages } = tree.find(({ uuid }) => uuid === node) ?? assert.fail();
      await page.getByLabel('Name or UUID').fill(name);
      await page.getByRole('button', { name: 'Find' }).click();
      await page.getByRole('link', { name }).click();
      await page.getByRole('heading', { level: 1, name }).waitFor();
      assert.equal(page.url(), `${served.url}/console/providers/${node}`);
      assert.equal(
        await page.getByRole('region', { name: 'Tree' }).locator('.tree').first().locator('li').count(),
        tree.length,
      );
      const cells = await rowOf(page, 'VCPU').locator('td.number').allInnerTexts();
      assert.equal(cells[0]?.split(' ')[0], String(usages.VCPU ?? 0));
      assert.deepEqual(cells.slice(1), ['62', '32', '1', '2'], 'capacity, total, reserved, ratio');
      assert.equal(inventories.VCPU?.allocation_ratio, 2);
      await shows(page, 'HW_NUMA_ROOT');
      await page.getByRole('link', { name: consumer }).click();
      await page.getByRole('heading', { level: 1, name: consumer }).waitFor();
      const { project_id, user_id, allocations } = await placement.allocations.show(consumer);
      const facts = await textOf(page, '.facts');
      assert.ok(facts.includes(String(project_id)) && facts.includes(String(user_id)), facts);
      await rowOf(page, name).waitFor();
      assert.equal(await page.locator('tbody tr').count(), Object.keys(allocations).length);
      await shows(page, 'it is deleted');
      // The consumer shows the end of its term.
      const { consumer_generation } = await placement.consumers.show(consumer);
      const { expires_at } = await placement.consumers.setTerm(consumer, { expires_in: 3600, consumer_generation });
      await openView(page, served.url, `consumers/${consumer}`);
      const end = new Date(expires_at ?? '');
      const minute = `${String(end.getMinutes()).padStart(2, '0')}:${String(end.getSeconds()).padStart(2, '0')}`;
      await page.locator('.facts div', { hasText: 'until' }).getByText(minute).waitFor();
      // After the consumer is deleted, the view says that it has nothing.
      await placement.allocations.delete(consumer);
      await shows(page, 'It has nothing (any more).');
    }));

  /** A claim that waits, and the code of the error that ends its wait. */
  const beginWait = async (project: string, line?: string) => {
    const [consumer, ...others] = Array.from({ length: 5 }, () => crypto.randomUUID()).toSorted();
    assert.ok(consumer);
    const claim = {
      candidates: { resources: { VCPU: 9_999 } },
      project_id: project,
      user_id: 'ada',
      consumer_type: 'JOB',
      consumer_generation: null,
    };
    const claims = Object.fromEntries([consumer, ...others].map((uuid) => [uuid, claim]));
    const ended = served.placement.allocations.placeMany(claims, { waitMs: 600_000, line }).then(
      () => assert.fail('it fits nowhere'),
      (error: unknown) => (error instanceof ApiError ? error.code : assert.fail(String(error))),
    );
    await until('the claim waits', async () => {
      const listed = await served.placement.waiting.page({ project_id: project });
      return listed.some(({ consumers }) => consumers.includes(consumer));
    });
    return { consumer, others, ended };
  };

  test('claims that wait are listed by project and line, the list renews itself, and a button ends a wait', (t) =>
    onView(t, 'waiting', async (page) => {
      await shows(page, 'No claim waits.');
      const first = await beginWait('vision', 'gpu');
      const row = (consumer: string) => page.locator('tbody tr', { hasText: consumer });
      await row(first.consumer).waitFor();
      const second = await beginWait('vision', 'gpu');
      const other = await beginWait('speech');
      await row(other.consumer).waitFor();
      const cells = async (consumer: string) =>
        (await row(consumer).locator('td').allInnerTexts()).map((text) => text.trim());
      const shown = await cells(first.consumer);
      assert.deepEqual(shown.slice(0, 5), ['vision', 'ada', 'gpu', '1', 'room']);
      assert.match(shown[5] ?? '', /VCPU/);
      assert.match(shown[6] ?? '', /^\d+ (s|min) ago$/);
      assert.deepEqual((await cells(second.consumer)).slice(2, 5), ['gpu', '2', 'line']);
      assert.deepEqual((await cells(other.consumer)).slice(2, 5), ['—', '1', 'room']);
      // A gang shows its first consumers, and opens the others.
      const links = row(first.consumer).locator('th a:visible');
      assert.equal(await links.count(), 3);
      await row(first.consumer).getByText('and 2 more').click();
      assert.equal(await links.count(), 5);

      await page.getByRole('textbox', { name: 'Project' }).fill('speech');
      await page.getByRole('button', { name: 'Find' }).click();
      await row(first.consumer).waitFor({ state: 'detached' });
      await row(other.consumer).waitFor();
      assert.match(page.url(), /\/console\/waiting\?project=speech$/);
      await page.getByRole('textbox', { name: 'Line' }).fill('gpu');
      await page.keyboard.press('Enter');
      await shows(page, 'No such claim waits.');
      await openView(page, served.url, 'limits/vision');
      await page.getByRole('link', { name: 'its waiting claims' }).click();
      await row(second.consumer).getByRole('link', { name: 'gpu' }).click();
      assert.match(page.url(), /\/console\/waiting\?project=vision&line=gpu$/);
      const line = page.getByRole('textbox', { name: 'Line' });
      await until('the field has the line', async () => (await line.inputValue()) === 'gpu');

      // By keyboard: the safe answer has the focus, and Escape and this answer change nothing.
      const button = page.getByRole('button', { name: `End the wait of ${first.consumer}` });
      const focused = () => page.evaluate<string>('document.activeElement.textContent');
      for (const key of ['Escape', 'Enter']) {
        await button.focus();
        await page.keyboard.press('Enter');
        const dialog = page.getByRole('dialog', { name: 'End this wait?' });
        await dialog.getByText(`${first.consumer} and 4 other consumers of project vision, in line gpu`).waitFor();
        assert.equal(await focused(), 'Let it wait');
        await checkAccessibility(page, 'the dialog');
        await page.keyboard.press(key);
        // A closed dialog has no role. The next key may be pressed once the view has removed it.
        await page.locator('dialog[aria-labelledby="end-heading"]').waitFor({ state: 'detached' });
        assert.equal(await focused(), 'End');
      }
      await page.keyboard.press('Enter');
      await page.getByRole('dialog').waitFor();
      await page.keyboard.press('Tab');
      assert.equal(await focused(), 'End the wait');
      await page.keyboard.press('Enter');
      assert.equal(await first.ended, 'placement.no_candidates');
      await page.getByRole('status').getByText(`The wait of ${first.consumer} is ended.`).waitFor();
      await row(first.consumer).waitFor({ state: 'detached' });
      assert.equal(await focused(), 'Waiting claims');
      await until('the next one is first', async () => (await cells(second.consumer))[3] === '1');

      // Another client has ended the wait before.
      await page.getByRole('button', { name: `End the wait of ${second.consumer}` }).click();
      await served.placement.waiting.remove(second.consumer);
      await row(second.consumer).waitFor({ state: 'detached' });
      await page.getByRole('button', { name: 'End the wait' }).click();
      await shows(page, `The claim of ${second.consumer} does not wait any more.`);
      await served.placement.waiting.remove(other.consumer);
      await Promise.all([second.ended, other.ended]);
    }));

  test('a query says where it fits, how often, why not, and why not one host; its URL has the query', (t) =>
    onView(t, 'fit', async (page) => {
      const { placement } = served;
      const query = {
        resources: { VCPU: 64, MEMORY_MB: 300_000 },
        required: ['HW_CPU_X86_AVX2', '!STORAGE_DISK_SSD'],
      };
      // The form is filled by keyboard alone.
      await page.getByLabel('Amount 1').fill('64');
      await page.keyboard.press('Tab');
      await page.keyboard.type('vcpu');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await page.getByLabel('Amount 2').fill('300000');
      await page.keyboard.press('Tab');
      await page.keyboard.type('MEMORY_MB');
      await page.getByLabel('Traits', { exact: true }).focus();
      for (const trait of query.required) {
        await page.keyboard.type(trait);
        await page.keyboard.press('Enter');
      }
      await page.getByRole('button', { name: 'Where does it fit?' }).focus();
      await page.keyboard.press('Enter');
      await page.locator('.funnel tbody tr').first().waitFor();
      assert.equal(
        new URL(page.url()).search,
        '?resources=VCPU:64,MEMORY_MB:300000&required=HW_CPU_X86_AVX2,!STORAGE_DISK_SSD',
      );
      const { conditions, fitting, nearest } = await placement.candidateQuestions.explain({ ...query, nearest: 10 });
      const shown = await page
        .locator('.funnel')
        .first()
        .locator('tbody tr')
        .evaluateAll((rows: readonly { innerText: string }[]) => rows.map((row) => row.innerText.split(/\s+/)));
      assert.deepEqual(
        shown.map(([condition, left, alone, without]) => [condition, Number(left), Number(alone), Number(without)]),
        conditions.map(({ parameter, value, left, alone, without }) => [`${parameter}=${value}`, left, alone, without]),
      );
      const { count } = await placement.candidateQuestions.count(query);
      assert.match(await textOf(page, '.count'), new RegExp(`^${count.toLocaleString('en')} `));
      const { allocation_requests } = await placement.candidates({ ...query, limit: 20 });
      assert.equal(await page.locator('.candidates li').count(), allocation_requests.length);
      assert.equal(fitting === 0, allocation_requests.length === 0);
      const host = nearest[0]?.root.name ?? assert.fail('some host does not fit');
      await page.getByLabel('Name, part of a name, or UUID of a provider').fill(host);
      await page.getByRole('button', { name: 'Why not?' }).click();
      await shows(page, 'It fits none of 1 tree.');
      // A query that the service refuses keeps its form, with the reason.
      await page.getByLabel('Resource class 1').fill('CUSTOM_NO_SUCH');
      await page.getByRole('button', { name: 'Where does it fit?' }).click();
      // Each part of the page that asks says so.
      await page.locator('.trouble', { hasText: 'CUSTOM_NO_SUCH' }).first().waitFor();
      assert.equal(await page.getByLabel('Amount 1').inputValue(), '64');
    }));

  test('changes are shown as they happen while claims run', (t) =>
    onView(t, 'changes', async (page) => {
      await page.locator('.dot.live').waitFor();
      const ended = new AbortController();
      const running = liveDemo(served.placement, consumers.slice(-20), ended.signal).catch(() => {});
      await until('ten changes are shown', async () => (await page.locator('tbody tr').count()) >= 10);
      assert.match(await textOf(page, 'tbody tr td:nth-child(3)'), /usages/);
      await page
        .locator('tbody td:nth-child(2)', { hasText: /^(rack|pool)\d\d/ })
        .first()
        .waitFor();
      await page.getByRole('button', { name: 'Pause' }).click();
      ended.abort();
      await running;
      await page.getByLabel('usages').uncheck();
      await shows(page, /^No such change since \d\d:\d\d:\d\d\./);
    }));

  test('every view is reached and used by keyboard alone', (t) =>
    onView(t, 'fleet', async (page) => {
      await page.locator('canvas[data-cells]:not([data-cells="0"])').waitFor();
      const tabUntil = async (what: string, holds: () => Promise<boolean>) => {
        for (let presses = 0; !(await holds()); presses++) {
          assert.ok(presses < 60, `no ${what} is reached by Tab`);
          await page.keyboard.press('Tab');
        }
      };
      const focused = () =>
        page.evaluate<string>("document.activeElement.tagName + ' ' + document.activeElement.innerText");
      await tabUntil('grid', async () => (await focused()).startsWith('CANVAS'));
      const announced = async () => (await page.locator('[aria-live="polite"]').textContent()) ?? '';
      // How full a provider is may change at any time, so the name identifies the announced provider.
      const nameOf = (text: string) => text.split(',')[0] ?? '';
      for (const key of ['ArrowRight', 'ArrowDown']) {
        const before = nameOf(await announced());
        await page.keyboard.press(key);
        await until('another provider is announced', async () => nameOf(await announced()) !== before);
        assert.match(await announced(), /^(rack|pool)\S+, VCPU \S+ full$/);
      }
      const chosen = nameOf(await announced());
      await page.keyboard.press('+');
      await page.keyboard.press('0');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1, name: chosen }).waitFor();
      // The grid is gone, and had the focus.
      await until('the view has the focus', () => page.evaluate("document.activeElement.id === 'view'"));
      for (const [name, view] of [
        ['Consumer', 'consumers'],
        ['Limits', 'limits'],
        ['Holders', 'holdings'],
        ['Waiting', 'waiting'],
        ['Where does it fit?', 'fit'],
        ['Changes', 'changes'],
        ['Aggregates', 'aggregates'],
        ['Provider', 'providers'],
        ['Fleet', 'fleet'],
      ] as const) {
        await tabUntil(name, async () => (await focused()) === `A ${name}`);
        await page.keyboard.press('Enter');
        await page.waitForURL(`${served.url}/console/${view}`);
      }
      await page.goBack();
      await page.waitForURL(`${served.url}/console/providers`);
    }));

  test('the page waits for a service that stops and starts again, and loses nothing', (t) =>
    onView(t, 'fit', async (page) => {
      await page.locator('.dot.live').waitFor();
      await page.getByLabel('Resource class 1').fill('VCPU');
      await served.down();
      await page.locator('.dot.silent').waitFor();
      await page.getByRole('button', { name: 'Where does it fit?' }).click();
      await shows(page, 'Counting…');
      await served.up();
      await page.locator('.count').waitFor();
      await page.locator('.dot.live').waitFor();
    }));

  test('names are shown as text, whatever they contain', (t) =>
    onView(t, 'providers', async (page) => {
      const names = [
        '<img src=x onerror="document.title=1">',
        '=HYPERLINK("http://evil.example","x")',
        'safe\u202egpj.exe',
        '</script><script>alert(1)</script>',
      ];
      for (const name of names) {
        const { uuid, generation } = await served.placement.providers.create({ name });
        const inventories = { VCPU: { total: 8 } };
        await served.placement.inventories.set(uuid, { inventories, resource_provider_generation: generation });
        await page.goto(`${served.url}/console/providers/${uuid}`);
        await giveToken(page, 'admin');
        const shown = name.replace('\u202e', '‹U+202E›');
        await page.getByRole('heading', { level: 1 }).getByText(shown, { exact: true }).waitFor();
        await page.getByRole('link', { name: 'Fleet' }).click();
        await page.getByRole('button', { name: 'Table' }).click();
        await page.getByLabel('Search').fill(uuid);
        await rowOf(page, shown).waitFor();
        assert.equal(await page.locator('main img, main script').count(), 0);
        await served.placement.providers.delete(uuid);
      }
    }));

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`axe finds nothing in any view, ${colorScheme}`, (t) =>
      onView(
        t,
        'fleet',
        async (page) => {
          const [{ uuid: provider } = assert.fail()] = await served.placement.providers.list({
            required: ['CUSTOM_GPU_A100'],
          });
          const [{ uuid: consumer } = assert.fail()] = await served.placement.consumers.page({ limit: 1 });
          const project = 'checked';
          await served.placement.limits.set(project, { resources: { VCPU: 8, PGPU: null }, generation: null });
          const waiting = await beginWait(project);
          try {
            await checkViews(page, { provider, consumer, project });
          } finally {
            await served.placement.waiting.remove(waiting.consumer);
            await waiting.ended;
            await served.placement.limits.delete(project);
          }
        },
        { colorScheme, ...(colorScheme === 'dark' ? { viewport: { width: 390, height: 800 } } : {}) },
      ));
  }
});

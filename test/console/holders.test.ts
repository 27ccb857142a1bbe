/* The view of holders, and the names of consumers in each view that shows consumers. A real service is read, and names contain markup. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { ApiError, type Placement } from '../../src/client/index.ts';
import { anyEngine } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { checkAccessibility, giveToken, openView, rows, withPage } from './pages.ts';
import { browserForTests, type Served, serve, shows, viewTests } from './serving.ts';

const browserOf = browserForTests();
const markup = '<img src=x onerror="document.title=1">';
const script = '</script><script>alert(1)</script>';
const [hostName, gpuName] = ['host <b>1</b>', 'gpu "0" of host-1'];
const [host, gpu] = [randomUUID(), randomUUID()];
/** Of project `vision`: on the GPU alone and with a term; on both providers; without a name. */
/** Before those of the crowd, so that they are on the first page wherever both are listed. */
const firstUuid = (): string => `00000000${randomUUID().slice(8)}`;
const [trainer, both, nameless] = [firstUuid(), firstUuid(), firstUuid()];
/** More consumers of project `crowd` than fit on a page. */
const crowd = Array.from({ length: 103 }, () => randomUUID()).toSorted();

async function fill(placement: Placement): Promise<void> {
  for (const [uuid, name, parent, inventories] of [
    [host, hostName, undefined, { VCPU: { total: 999 } }],
    [gpu, gpuName, host, { PGPU: { total: 8 } }],
  ] as const) {
    await placement.providers.create({ uuid, name, parent_provider_uuid: parent });
    await placement.inventories.set(uuid, { inventories, resource_provider_generation: 0 });
  }
  const claim = (project: string, user: string, name: string | null, allocations: object, expires_in?: number) => ({
    project_id: project,
    user_id: user,
    consumer_type: 'JOB',
    consumer_generation: null,
    name,
    ...(expires_in === undefined ? {} : { expires_in }),
    allocations: allocations as { readonly [provider: string]: { readonly resources: Record<string, number> } }, // the calls below
  });
  await placement.allocations.setMany({
    [trainer]: claim('vision', 'ada', markup, { [gpu]: { resources: { PGPU: 2 } } }, 86_400),
    [both]: claim('vision', 'bob', script, { [host]: { resources: { VCPU: 3 } }, [gpu]: { resources: { PGPU: 1 } } }),
    [nameless]: claim('vision', 'ada', null, { [host]: { resources: { VCPU: 5 } } }),
  });
  const one = { [host]: { resources: { VCPU: 1 } } };
  await placement.allocations.setMany(
    Object.fromEntries(crowd.map((uuid, index) => [uuid, claim('crowd', 'eve', `job-${index}`, one)])),
  );
}

let served: Served;
before(async () => {
  served = await serve(anyEngine);
  await fill(served.placement);
});
after(() => served.close());

/** The rows of the table, each as the texts of its cells; of a row header, each line. */
const cellsOf = (page: Page): Promise<readonly (readonly string[])[]> =>
  rows(page).evaluateAll(
    (all: readonly { readonly children: Iterable<{ readonly innerText: string }> }[]): readonly (readonly string[])[] =>
      all.map(({ children }) => [...children].flatMap(({ innerText }) => innerText.trim().split('\n'))),
  );
const rowOf = (page: Page, consumer: string) => page.locator('tbody tr', { hasText: consumer });

const { onView } = viewTests(browserOf, () => served);

/** A view on a page of its own. Names may bring no element with them. */
function testView(what: string, view: string, use: (page: Page) => Promise<void>, options = {}): void {
  const useAndLook = async (page: Page) => {
    await use(page);
    assert.equal(await page.locator('main img, main script, main b').count(), 0);
    assert.notEqual(await page.title(), '1');
  };
  test(what, (t) => onView(t, view, useAndLook, options));
}

testView('holders of a project: names, UUIDs, providers, roots, amounts and times', 'holdings?project=vision', (page) =>
  until('they are as the service tells them', async () => {
    const listed = await served.placement.holdings.page({ project_id: 'vision' });
    assert.equal(listed.length, 4);
    const shown = await cellsOf(page);
    if (shown.length !== 4) return false;
    for (const [index, { consumer, name, user_id, resource_provider, resources, expires_at }] of listed.entries()) {
      const row = shown[index] ?? assert.fail();
      assert.deepEqual(row.slice(0, -4), [
        ...(name === null ? [] : [name]),
        consumer,
        'vision',
        user_id,
        resource_provider.name,
        hostName,
      ]);
      const [processors, gpus, age, end] = row.slice(-4);
      assert.deepEqual([processors, gpus], [`${resources.VCPU ?? ''}`, `${resources.PGPU ?? ''}`]);
      assert.match(age ?? '', /^\d+ (s|min) ago$/);
      assert.equal(end === '—', expires_at === null);
    }
    return true;
  }),
);

testView(
  'holders have an age, and are sorted by it, by amounts and by end',
  'holdings?project=vision',
  async (page) => {
    const late = `ffffffff${randomUUID().slice(8)}`;
    // Later than the others by a second at least, so that it is younger in any unit.
    await sleep(1_100);
    await served.placement.allocations.set(late, {
      project_id: 'vision',
      user_id: 'zoe',
      consumer_type: 'JOB',
      consumer_generation: null,
      expires_in: 3_600,
      allocations: { [host]: { resources: { VCPU: 4 } } },
    });
    await rowOf(page, late).waitFor();
    await page.getByText(/^As of \d\d:\d\d:\d\d, follows changes$/).waitFor();
    const sortBy = async (name: string, url: string) => {
      await page.getByRole('columnheader', { name }).getByRole('button').click();
      await page.waitForURL(`${served.url}/console/holdings?project=vision&sort=${url}`);
    };
    const consumers = async () =>
      (await cellsOf(page)).map((cells) => cells.find((cell) => /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(cell)));
    const begins = (...expected: readonly string[]) =>
      until(`first ${expected}`, async () => (await consumers()).slice(0, expected.length).join() === expected.join());
    const ends = (expected: string) => until(`last ${expected}`, async () => (await consumers()).at(-1) === expected);
    await sortBy('since', '-age');
    await ends(late);
    await sortBy('since', 'age');
    await begins(late);
    assert.equal(await page.getByRole('columnheader', { name: 'since' }).getAttribute('aria-sort'), 'ascending');
    await sortBy('VCPU', '-VCPU');
    await begins(nameless, late, both);
    await sortBy('PGPU', '-PGPU');
    await begins(trainer, both);
    await sortBy('until', 'until');
    await begins(late, trainer);
    await sortBy('until', '-until');
    await ends(late);
    // Another tab has the order of the URL.
    await openView(page, served.url, 'holdings?project=vision&sort=-user');
    await begins(late, both);
    await checkAccessibility(page, 'sorted holders');
    await served.placement.allocations.delete(late);
  },
);

testView(
  'the order of holders is of the page, and turns with it',
  'holdings?project=crowd&sort=-name',
  async (page) => {
    const names = async () => (await cellsOf(page)).map(([name]) => name);
    const numbers = crowd.map((_, index) => index);
    const down = (from: number, to: number) =>
      numbers
        .slice(from, to)
        .toReversed()
        .map((index) => `job-${index}`);
    await page.getByText('The order is of this page.').waitFor();
    assert.deepEqual(await names(), down(0, 100));
    await page.getByRole('button', { name: 'Next' }).click();
    await until('the next page', async () => (await names()).join() === down(100, 103).join());
    assert.match(page.url(), /sort=-name/);
    // A new order leaves the way back to the page before, which has this order then.
    await page.getByRole('button', { name: 'consumer', exact: true }).click();
    await page.waitForURL(/sort=name/);
    await page.getByRole('button', { name: 'Previous' }).click();
    await until('the first page', async () => (await names()).join() === down(0, 100).toReversed().join());
  },
);

testView('consumers are found by a part of their name, whatever its case', 'consumers', async (page) => {
  await page.getByRole('textbox', { name: 'Part of the name' }).fill('SRC=X');
  await page.getByRole('button', { name: 'Find' }).click();
  await page.waitForURL(/name=SRC/);
  await until('one consumer is listed', async () => (await rows(page).count()) === 1);
  await page.getByRole('link', { name: trainer }).waitFor();
  await until('what it has is shown', async () => (await page.getByTitle('2 PGPU').count()) === 1);
  await page.locator('.dot.live').waitFor();
  await page.keyboard.press('/');
  const dialog = page.getByRole('dialog', { name: 'Search' });
  await dialog.getByRole('textbox').fill('Script>');
  await dialog.getByRole('link', { name: both }).waitFor();
  await dialog.getByRole('textbox').fill('JOB-10');
  await until('job-10, 100, 101 and 102', async () => (await dialog.getByRole('link').count()) === 4);
  await dialog.getByRole('textbox').fill('job-9');
  await until('as many as are shown', async () => (await dialog.getByRole('link').count()) === 9);
  // Of several with the text, the one that is called so comes first.
  assert.match(await dialog.getByRole('link').first().innerText(), /^job-9 /);
  await dialog.getByRole('link', { name: 'All consumers with this in their name' }).click();
  await page.waitForURL(/consumers\?name=job-9$/);
  await until('job-9 and 90 to 99', async () => (await rows(page).count()) === 11);
});

testView('holders are found by project, user, class and provider, and the URL says it', 'holdings', async (page) => {
  const field = (name: string) => page.getByRole('textbox', { name });
  const find = async (url: string, count: number) => {
    await page.getByRole('button', { name: 'Find' }).click();
    await until(url, async () => page.url() === `${served.url}/console/${url}` && (await rows(page).count()) === count);
  };
  await rows(page).first().waitFor();
  await field('Project').fill(' vision ');
  await find('holdings?project=vision', 4);
  await field('User').fill('ada\t');
  await find('holdings?project=vision&user=ada', 2);
  await field('User').fill('');
  await field('Resource class').fill(' pgpu');
  await find('holdings?project=vision&class=PGPU', 2);
  await field('Resource class').fill('');
  await field('Provider').fill(gpu);
  await find(`holdings?project=vision&provider=${gpu}`, 2);
  await page.getByText(`2 consumers, of ${gpuName}`, { exact: true }).waitFor();
  await page.getByRole('checkbox', { name: 'and its whole tree' }).check();
  await find(`holdings?project=vision&provider=${gpu}&in=tree`, 4);
  await page.getByText(`3 consumers, of ${gpuName} and its whole tree`, { exact: true }).waitFor();
  // The name of a provider leads to the same as its UUID.
  await field('Provider').fill(gpuName);
  await page.getByRole('checkbox').uncheck();
  await page.getByRole('button', { name: 'Find' }).click();
  await page.getByText(`2 consumers, of ${gpuName}`, { exact: true }).waitFor();
  await field('Provider').fill('no such host');
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText('No provider has this name.').waitFor();
  await field('Provider').fill('');
  await field('User').fill('nobody');
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText('No consumer holds this.').waitFor();
  await field('Resource class').fill('CUSTOM_NO_SUCH');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('CUSTOM_NO_SUCH').waitFor();
  // The browser goes back, and the fields with it.
  await page.goBack();
  await page.getByRole('status').getByText('No consumer holds this.').waitFor();
  assert.equal(await field('Resource class').inputValue(), '');
});

testView('pages follow the link of the answer', 'holdings?project=crowd', async (page) => {
  const uuids = async () => (await cellsOf(page)).map(([, uuid]) => uuid);
  const next = page.getByRole('button', { name: 'Next' });
  const previous = page.getByRole('button', { name: 'Previous' });
  await page.getByText('100 consumers on this page').waitFor();
  assert.deepEqual(await uuids(), crowd.slice(0, 100));
  assert.equal(await previous.isDisabled(), true);
  await next.click();
  await page.getByText('3 consumers on this page').waitFor();
  assert.deepEqual(await uuids(), crowd.slice(100));
  assert.equal(await next.isDisabled(), true);
  await previous.click();
  await page.getByText('100 consumers on this page').waitFor();
  await openView(page, served.url, `holdings?project=crowd&after=${crowd.at(-1)}`);
  await page.getByRole('link', { name: 'The first ones' }).click();
  await page.waitForURL(`${served.url}/console/holdings?project=crowd`);
});

testView('the list follows claims', 'holdings?project=later', async (page) => {
  await page.getByRole('status').getByText('No consumer holds this.').waitFor();
  await page.locator('.dot.live').waitFor();
  const uuid = randomUUID();
  await served.placement.allocations.place(uuid, {
    candidates: { resources: { VCPU: 1 } },
    project_id: 'later',
    user_id: 'ada',
    consumer_type: 'JOB',
    consumer_generation: null,
    name: 'a job that comes later',
  });
  await rowOf(page, uuid).getByText('a job that comes later').waitFor();
  await served.placement.allocations.delete(uuid);
  await page.getByRole('status').getByText('No consumer holds this.').waitFor();
});

testView('links lead from a project, a provider and a row to holders, and back', 'limits/vision', async (page) => {
  await page.getByRole('link', { name: 'what they hold and where' }).click();
  await page.waitForURL(`${served.url}/console/holdings?project=vision`);
  await rowOf(page, trainer).getByRole('link', { name: gpuName }).click();
  await page.waitForURL(`${served.url}/console/providers/${gpu}`);
  const toHolders = page.getByRole('link', { name: 'What each of them holds and where' });
  await toHolders.click();
  await page.waitForURL(`${served.url}/console/holdings?provider=${gpu}`);
  await page.goBack();
  await page.getByRole('button', { name: 'Its whole tree' }).click();
  await rowOf(page, nameless).waitFor();
  await toHolders.click();
  await page.waitForURL(`${served.url}/console/holdings?provider=${gpu}&in=tree`);
  await rowOf(page, nameless).getByRole('link', { name: 'vision' }).click();
  await page.waitForURL(`${served.url}/console/holdings?project=vision`);
  await page.getByRole('link', { name: 'its limits' }).click();
  await page.waitForURL(`${served.url}/console/limits/vision`);
});

testView('a consumer, the consumers of a provider and the list of consumers have names', 'consumers', async (page) => {
  await page.getByRole('textbox', { name: 'Project' }).fill('vision');
  await page.getByRole('button', { name: 'Find' }).click();
  await until('three consumers are listed', async () => (await rows(page).count()) === 3);
  await rowOf(page, trainer).getByRole('rowheader').getByText(markup, { exact: true }).waitFor();
  assert.equal(await rowOf(page, nameless).getByRole('rowheader').innerText(), nameless);
  await page.getByRole('textbox', { name: 'Part of the name' }).fill(markup);
  await page.getByRole('button', { name: 'Find' }).click();
  await until('one consumer is listed', async () => (await rows(page).count()) === 1);
  await page.getByRole('link', { name: trainer }).click();
  await page.getByRole('heading', { level: 1, name: markup }).waitFor();
  await page.locator('.view-header').getByText(trainer).waitFor();
  await openView(page, served.url, `consumers/${nameless}`);
  await page.getByRole('heading', { level: 1, name: nameless }).waitFor();
  await openView(page, served.url, `providers/${gpu}`);
  await rowOf(page, both).getByRole('rowheader').getByText(script, { exact: true }).waitFor();
});

testView('a waiting claim and the end of its wait name the consumer', 'waiting', async (page) => {
  const [first, second] = [randomUUID(), randomUUID()].toSorted();
  assert.ok(first !== undefined && second !== undefined);
  const claim = (name: string | null) => ({
    candidates: { resources: { PGPU: 9 } },
    project_id: 'vision',
    user_id: 'ada',
    consumer_type: 'JOB',
    consumer_generation: null,
    name,
  });
  const ended = served.placement.allocations
    .placeMany({ [first]: claim(markup), [second]: claim(null) }, { waitMs: 600_000 })
    .then(
      () => assert.fail('it fits nowhere'),
      (error: unknown) => (error instanceof ApiError ? error.code : assert.fail(String(error))),
    );
  assert.deepEqual((await rowOf(page, first).getByRole('rowheader').innerText()).split('\n'), [markup, first, second]);
  await page.getByRole('button', { name: `End the wait of ${markup} (${first})` }).click();
  const dialog = page.getByRole('dialog', { name: 'End this wait?' });
  await dialog.getByText(`${markup} ${first} and 1 other consumer of project vision`).waitFor();
  await checkAccessibility(page, 'the dialog');
  await page.getByRole('button', { name: 'End the wait', exact: true }).click();
  await page.getByRole('status').getByText(`The wait of ${markup} (${first}) is ended.`).waitFor();
  assert.equal(await ended, 'placement.no_candidates');
});

for (const [colorScheme, viewport] of [
  ['light', { width: 1280, height: 800 }],
  ['dark', { width: 390, height: 800 }],
] as const) {
  testView(
    `holders are used by keyboard and screen reader, ${colorScheme}`,
    'holdings',
    async (page) => {
      await rows(page).first().waitFor();
      await page.getByRole('textbox', { name: 'Project' }).focus();
      for (const key of ['vision', 'Tab', 'Tab', 'PGPU', 'Tab', hostName, 'Tab', 'Space', 'Tab', 'Enter']) {
        if (['Tab', 'Space', 'Enter'].includes(key)) await page.keyboard.press(key);
        else await page.keyboard.type(key);
      }
      await page.getByRole('region', { name: 'Table of 2 holdings' }).waitFor();
      assert.equal(
        new URL(page.url()).search,
        '?project=vision&class=PGPU&provider=host+%3Cb%3E1%3C/b%3E&in=tree'.replace('/', '%2F'),
      );
      // What a screen reader tells with each cell: the consumer of the row, and the heading of the column.
      await page.getByRole('rowheader', { name: `${markup} ${trainer}` }).waitFor();
      for (const name of ['consumer', 'project', 'user', 'provider', 'root', 'PGPU', 'since', 'until']) {
        assert.equal(await page.getByRole('columnheader', { name, exact: true }).count(), 1, name);
      }
      await checkAccessibility(page, 'holders');
      await page.getByRole('button', { name: 'Find' }).focus();
      const focused = () => page.evaluate<string>('document.activeElement.closest("a")?.innerText ?? ""');
      for (let presses = 0; !(await focused()).includes(trainer); presses++) {
        assert.ok(presses < 40, 'the link of a consumer is reached by Tab');
        await page.keyboard.press('Tab');
      }
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1, name: markup }).waitFor();
      await checkAccessibility(page, 'a consumer with a name');
      await page.goto(`${served.url}/console/providers/${gpu}`);
      await giveToken(page, 'admin');
      await rowOf(page, both).waitFor();
      await checkAccessibility(page, 'a provider whose consumers have names');
    },
    { colorScheme, viewport },
  );
}

test('a service of 2.8 has no holders, and its consumers no names', async (t) => {
  const browser = browserOf(t);
  if (browser === undefined) return;
  const old = await serve(anyEngine, { api: { authStrategy: 'noauth2', maxMicroversion: '2.8', host: '127.0.0.1' } });
  try {
    await old.placement.providers.create({ uuid: host, name: 'host' });
    await old.placement.inventories.set(host, { inventories: { VCPU: { total: 8 } }, resource_provider_generation: 0 });
    await old.placement.allocations.set(trainer, {
      allocations: { [host]: { resources: { VCPU: 1 } } },
      project_id: 'vision',
      user_id: 'ada',
      consumer_type: 'JOB',
      consumer_generation: null,
    });
    await withPage(browser, old.url, async (page) => {
      await openView(page, old.url, 'holdings?project=vision');
      await page.locator('.trouble.version', { hasText: 'It needs microversion 2.9.' }).first().waitFor();
      await page.getByRole('link', { name: 'its consumers' }).click();
      await page.getByRole('link', { name: trainer }).click();
      await page.getByRole('heading', { level: 1, name: trainer }).waitFor();
      await shows(page, '1 VCPU');
    });
  } finally {
    await old.close();
  }
});

/* The limits of a project, with what it uses, on both databases: the service sums it up there. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, suite } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { openView, rowOf } from './pages.ts';
import { browserForTests, type Served, serve, shows, viewTests } from './serving.ts';

const browserOf = browserForTests();

suite('the console', () => {
  let served: Served;
  before(async () => {
    served = await serve(anyEngine);
    const { uuid } = await served.placement.providers.create({ name: 'host-1' });
    const inventories = { VCPU: { total: 8 } };
    await served.placement.inventories.set(uuid, { inventories, resource_provider_generation: 0 });
  });
  after(() => served.close());

  const { testView } = viewTests(browserOf, () => served);

  testView('the limits of a project are shown with what it uses, and follow its claims', 'limits', async (page) => {
    const { placement } = served;
    await shows(page, 'No project has limits of its own.');
    await page.getByRole('textbox', { name: 'Project', exact: true }).fill('vision');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByRole('heading', { level: 1, name: 'vision' }).waitFor();
    await shows(page, 'Nothing limits this project.');
    const limits = { resources: { VCPU: 4, PGPU: null }, consumers: { all: 10 }, generation: null };
    await placement.limits.set('vision', limits);
    const consumer = randomUUID();
    await placement.allocations.place(consumer, {
      candidates: { resources: { VCPU: 2 } },
      project_id: 'vision',
      user_id: 'ada',
      consumer_type: 'JOB',
      consumer_generation: null,
    });
    const cells = async (name: string) =>
      (await rowOf(page, name).locator('td').allInnerTexts()).map((text) => text.trim());
    await until('the claim is counted', async () => (await cells('VCPU'))[0] === '2');
    assert.deepEqual(await cells('VCPU'), ['2', '4', '50%', '', 'project']);
    assert.deepEqual(await cells('PGPU'), ['0', 'none', '—', '', 'project']);
    assert.deepEqual(await cells('consumers'), ['1', '10', '10%', '', 'project']);
    await openView(page, served.url, 'limits');
    await page.getByRole('link', { name: 'vision' }).click();
    await page.getByRole('link', { name: 'Its consumers' }).click();
    await page.getByRole('link', { name: consumer }).click();
    await page.getByRole('link', { name: 'its limits' }).click();
    await page.waitForURL(`${served.url}/console/limits/vision`);
  });

  testView('projects that cannot be a part of a path have a page of their own', 'limits', async (page) => {
    for (const project of ['a/b', '..', '100% ?#']) {
      await page.getByRole('textbox', { name: 'Project', exact: true }).fill(project);
      await page.getByRole('button', { name: 'Show' }).click();
      await page.getByRole('heading', { level: 1, name: project, exact: true }).waitFor();
      await openView(page, served.url, page.url().replace(`${served.url}/console/`, ''));
      await page.getByRole('heading', { level: 1, name: project, exact: true }).waitFor();
      await shows(page, project === '..' ? 'Its limits cannot be read' : 'Nothing limits this project.');
      assert.equal(await page.title(), `${project} · Limits · Placement`);
      await page.getByRole('navigation').getByRole('link', { name: 'Limits' }).click();
    }
  });

  testView('a page is not wider than the window, however long the name of a project is', 'fleet', async (page) => {
    const project = 'p'.repeat(255);
    await served.placement.limits.set(project, { resources: { VCPU: 1 }, generation: null });
    try {
      for (const view of ['limits', `limits/${project}`, `holdings?project=${project}`]) {
        await openView(page, served.url, view);
        await page.locator('main').getByText(project).first().waitFor();
        const [wide, window] = await page.evaluate<[number, number]>('[document.body.scrollWidth, innerWidth]');
        assert.ok(wide <= window, `${view}: ${wide} > ${window}`);
      }
    } finally {
      await served.placement.limits.delete(project);
    }
  });

  testView('new limits are shown after a while, and new defaults', 'fleet', async (page) => {
    const { placement } = served;
    await page.locator('.dot.live').waitFor();
    await page.clock.install();
    await page.getByRole('link', { name: 'Limits' }).click();
    await shows(page, 'There are none: a project without limits of its own has no limits.');
    const { generation } = await placement.limits.showDefaults();
    await placement.limits.setDefaults({ resources: { VCPU: 7 }, generation });
    await placement.limits.set('later', { resources: { VCPU: 5 }, generation: null });
    await page.clock.fastForward(20_000);
    await page.getByRole('region', { name: 'Table of default limits' }).getByRole('row', { name: 'VCPU 7' }).waitFor();
    await page.getByRole('link', { name: 'later' }).waitFor();
  });
});

import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { type Candidates, connect, type Placement } from '../../src/client/index.ts';
import { asking } from '../../src/client/operation.ts';
import { isByType } from '../../src/client/usages.ts';
import { fillDemo } from '../../src/demo/fill.ts';
import { liveDemo } from '../../src/demo/live.ts';
import { listen } from '../../src/http/server/listen.ts';
import { withTestService } from '../support/services.ts';
import { launchChromium } from './chromium.ts';
import { giveToken, withPage } from './pages.ts';

/* `npm run screenshots` takes the pictures in docs/images again, of a demo fleet. */

const folder = path.join(import.meta.dirname, '..', '..', 'docs', 'images');
/** A query for a GPU and a number of processors. */
const queryFor = (processors: number) =>
  `resources=VCPU:${processors},MEMORY_MB:${processors * 4096}&required=HW_CPU_X86_AVX512F,CUSTOM_ZONE_B` +
  '&resources_GPU=PGPU:1&required_GPU=CUSTOM_GPU_A100&group_policy=none';

const browser = await launchChromium();
if (typeof browser === 'string') {
  console.error(browser);
  process.exit(1);
}
await mkdir(folder, { recursive: true });
await withTestService('embedded', {}, async (service) => {
  const server = await listen(service.app, { host: '127.0.0.1', port: 0, drainMs: 0 });
  const placement = connect({ endpoint: server.url, auth: 'admin' });
  const { consumers } = await fillDemo(placement, 1000, console.log);
  const [gpu] = await placement.providers.list({ required: ['CUSTOM_GPU_A100'] });
  const provider = gpu?.parent_provider_uuid ?? '';
  const [consumer] = await placement.consumers.page({ resource_provider: provider, limit: 1 });
  // The smallest multiple of 8 processors that fits nowhere.
  let processors = 8;
  while (processors < 64 && (await fits(placement, queryFor(processors)))) processors += 8;
  const projects = new Set((await placement.consumers.page({ limit: 500 })).map(({ project_id }) => project_id));
  for (const project of [...projects].slice(0, 4)) {
    const usages = await placement.usages.ofProject({ project_id: project, consumer_type: 'all' });
    const { consumer_count: count = 0, ...amounts } = (isByType(usages) && usages.all) || {};
    const resources = Object.fromEntries(Object.entries(amounts).map(([name, used]) => [name, Math.ceil(used * 1.3)]));
    await placement.limits.set(project, { resources, consumers: { all: count * 2 }, generation: null });
  }
  const ended = new AbortController();
  const others = consumers.filter((uuid) => uuid !== consumer?.uuid);
  const living = liveDemo(placement, others, ended.signal).catch(() => {});
  const views: readonly (readonly [name: string, path: string, shown: string])[] = [
    ['fleet', 'fleet?group=aggregate', 'canvas:not([data-cells="0"])'],
    ['provider', `providers/${provider}`, '.inventories'],
    ['consumer', `consumers/${consumer?.uuid}`, 'tbody tr'],
    ['limits', 'limits', 'tbody tr'],
    ['fit', `fit?${queryFor(processors)}`, '.funnel tbody tr'],
    ['changes', 'changes', 'tbody tr:nth-child(25)'],
  ];
  for (const [kind, colorScheme, viewport] of [
    ['light', 'light', { width: 1280, height: 780 }],
    ['dark', 'dark', { width: 1280, height: 780 }],
    ['narrow', 'light', { width: 390, height: 780 }],
  ] as const) {
    await withPage(
      browser,
      server.url,
      async (page) => {
        for (const [name, view, shown] of views) {
          await page.goto(`${server.url}/console/${view}`);
          await giveToken(page, 'admin');
          await page.locator(shown).first().waitFor();
          await page.locator('.dot.live').waitFor();
          await page.waitForLoadState('networkidle', { timeout: 3_000 }).catch(() => {}); // the console always waits for changes
          await page.evaluate('document.activeElement.blur()');
          await writeFile(path.join(folder, `${name}-${kind}.webp`), await webp(page));
        }
      },
      { colorScheme, viewport },
    );
  }
  ended.abort();
  await living;
  service.endWaits();
  await server.close();
});
await browser.close();

async function fits({ call }: Placement, query: string): Promise<boolean> {
  const parameters = [...new URLSearchParams(query)].map(([name, value]) => ({ name, value }));
  const { allocation_requests } = await asking(call)<Pick<Candidates, 'allocation_requests'>>({
    method: 'GET',
    path: '/allocation_candidates',
    query: [...parameters, { name: 'limit', value: '1' }],
  });
  return allocation_requests.length > 0;
}

async function webp(page: Page): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 82 });
  return Buffer.from(data, 'base64');
}

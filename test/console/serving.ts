import { after, before, type TestContext, test } from 'node:test';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { connect, type Placement } from '../../src/client/index.ts';
import { type Listening, listen } from '../../src/http/server/listen.ts';
import type { PlacementService } from '../../src/start/service.ts';
import type { Engine } from '../support/engines.ts';
import { type ConfigOverrides, openTestService } from '../support/services.ts';
import { launchChromium } from './chromium.ts';
import { openView, withPage } from './pages.ts';

/**
 * Launches a browser for the tests of a file, and closes it after them.
 *
 * @returns a function that returns the browser; without one it skips the test with the reason
 */
export function browserForTests(): (t: Pick<TestContext, 'skip'>) => Browser | undefined {
  let launched: Browser | string = 'it was not started';
  before(async () => {
    launched = await launchChromium();
  });
  after(async () => {
    if (typeof launched !== 'string') await launched.close();
  });
  return (t) => {
    if (typeof launched !== 'string') return launched;
    t.skip(launched);
    return undefined;
  };
}

/** A service with a socket. */
export type Served = {
  readonly service: PlacementService;
  readonly url: string;
  readonly placement: Placement;
  /** Stops listening. */
  down(): Promise<void>;
  /** Listens again, on the same port. */
  up(): Promise<void>;
  close(): Promise<void>;
};

/** Serves a fresh database. @param auth the token of `placement` */
export async function serve(engine: Engine, overrides: ConfigOverrides = {}, auth = 'admin'): Promise<Served> {
  const service = await openTestService(engine, overrides);
  const begin = (port: number) => listen(service.app, { host: '127.0.0.1', port, drainMs: 200 });
  let server: Listening | undefined = await begin(0);
  const { url } = server;
  const down = async () => {
    const listening = server;
    server = undefined;
    await listening?.close();
  };
  return {
    service,
    url,
    placement: connect({ endpoint: url, auth }),
    down,
    up: async () => {
      server = await begin(Number(new URL(url).port));
    },
    close: async () => {
      await down();
      await service.close();
    },
  };
}

/** Waits until a text is visible. */
export const shows = (page: Page, text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor();

/** Makes the functions that show a view of a service on a page of its own, in a test or as a test. */
export function viewTests(browserOf: ReturnType<typeof browserForTests>, served: () => Served) {
  const onView = async (
    t: TestContext,
    view: string,
    use: (page: Page) => Promise<void>,
    options: BrowserContextOptions = {},
  ): Promise<void> => {
    const browser = browserOf(t);
    if (browser === undefined) return;
    const { url } = served();
    const show = async (page: Page) => {
      await openView(page, url, view);
      await use(page);
    };
    await withPage(browser, url, show, options);
  };
  const testView = (
    what: string,
    view: string,
    use: (page: Page) => Promise<void>,
    options: BrowserContextOptions = {},
  ): void => {
    test(what, (t) => onView(t, view, use, options));
  };
  return { onView, testView };
}

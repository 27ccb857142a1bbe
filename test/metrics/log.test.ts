/** What /metrics tells of the log. */
import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { defaultConfig } from '../../src/config/config.ts';
import { openLog } from '../../src/log/log.ts';
import { startCommand, withCommands } from '../manage/commands.ts';
import { anyEngine, withFreshDatabase } from '../support/engines.ts';
import { openServiceOn } from '../support/services.ts';
import { until } from '../support/until.ts';

/** The values of the metrics of the log, by their names without `placement_log_`. */
function ofLog(scraped: string): Readonly<Record<string, number>> {
  const lines = scraped.matchAll(/^placement_log_(\w+)(?:\{.*\})? (\S+)$/gm);
  return Object.fromEntries(Array.from(lines, ([, name = '', value]) => [name, Number(value)]));
}

/** Starts placement-api, and calls back with a function that sends a request and scrapes. */
const serving = (
  moreConfig: string,
  use: (ask: () => Promise<Readonly<Record<string, number>>>, folder: string) => Promise<void>,
): Promise<void> =>
  withCommands(
    'embedded',
    'migrated',
    async ({ folder, configFile }) => {
      const server = startCommand('placement-api', ['--config-file', configFile], folder);
      const [, url = ''] = await server.said(/listens on (\S+)\n/);
      await use(async () => {
        await fetch(`${url}/resource_providers`, { headers: { 'x-auth-token': 'admin' } });
        return ofLog(await (await fetch(`${url}/metrics`)).text());
      }, folder);
      server.child.kill('SIGTERM');
      assert.equal((await server.ended).code, 0);
    },
    moreConfig,
  );

test('the free space on the disk of the log file is in the metrics', () =>
  serving('[DEFAULT]\nlog_dir = .\n', async (ask, folder) => {
    const { disk_free_bytes: free = 0, writable, lines_lost_total: lost } = await ask();
    assert.deepEqual([writable, lost], [1, 0]);
    assert.ok(free > 0);
    await until('the lines are written', async () => (await ask()).waiting_bytes === 0);
    const file = path.join(folder, 'placement-api.log');
    assert.ok((await stat(file)).size > 0 && (await readFile(file, 'utf8')).includes('/resource_providers'));
  }));

test('a log on standard error has no disk', () =>
  serving('', async (ask) => {
    const { waiting_bytes: waiting = -1, ...others } = await ask();
    assert.deepEqual(others, { writable: 1, lines_lost_total: 0 });
    assert.ok(waiting >= 0);
  }));

test('a full disk shows, while the service serves', () =>
  serving('[DEFAULT]\nlog_file = /dev/full\n', async (ask) => {
    await until('a write has failed', async () => (await ask()).writable === 0);
    const { waiting_bytes: waiting = 0 } = await ask();
    assert.ok(waiting > 0);
    await until('more waits', async () => ((await ask()).waiting_bytes ?? 0) > waiting);
  }));

test('lines that are lost are counted, each of them', () =>
  withFreshDatabase(anyEngine, async (database) => {
    const { logger, health } = openLog({ ...defaultConfig.default, logFile: '/dev/full', useJson: true });
    const service = await openServiceOn(database, {}, { logger, logHealth: health });
    try {
      const scrape = async () => ofLog(await (await service.app.request('/metrics')).text());
      const longText = 'x'.repeat(1_000_000);
      // Each of these lines is a write of its own, and 16 MiB have room for 16.
      for (let count = 0; count < 20; count += 1) logger.info(longText);
      logger.info('the last line');
      await until('lines are lost', async () => ((await scrape()).lines_lost_total ?? 0) > 0);
      const { lines_lost_total: lost, waiting_bytes: waiting = 0, writable } = await scrape();
      assert.equal(lost, 4);
      assert.ok(waiting > 16_000_000 && waiting < 16 * 1024 * 1024, `${waiting}`);
      assert.equal(writable, 0);
    } finally {
      await service.close();
    }
  }));

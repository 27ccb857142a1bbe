/** Characters that a terminal obeys never reach the log as they are, in none of its forms. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { defaultConfig } from '../../src/config/config.ts';
import { openLog } from '../../src/log/log.ts';
import { harmful, hasHarmful } from '../support/harmful_characters.ts';
import { inFolder } from '../support/in_folder.ts';
import { until } from '../support/until.ts';

for (const useJson of [true, false]) {
  test(`names in the log are escaped, with use_json = ${useJson}`, async () => {
    await inFolder(async (folder) => {
      const logFile = path.join(folder, 'log');
      const { logger } = openLog({ ...defaultConfig.default, useJson, logFile });
      const names = ['begin', ...harmful, 'end'];
      for (const name of names) {
        logger.info({ user: name, method: 'GET', url: name, status: 200 }, 'request');
        logger.warn({ err: new Error(name), name }, `A line about ${name}`);
      }
      await until('the lines are written', async () =>
        (await readFile(logFile, 'utf8').catch(() => '')).includes('about end'),
      );
      const text = await readFile(logFile, 'utf8');
      assert.ok(!hasHarmful(text), JSON.stringify(text.slice(0, 2000)));
      if (!useJson) return;
      const entries = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      assert.deepEqual(
        entries.flatMap(({ user }) => user ?? []),
        names,
      );
      assert.deepEqual(
        entries.flatMap(({ err }) => err?.message ?? []),
        names,
      );
    });
  });
}

import { spawnSync } from 'node:child_process';
import { chown, mkdtemp, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { hasPrograms } from './debian_packages.ts';
import { startKept, unprivilegedOwner } from './kept_process.ts';

/** Whether HAProxy is there, or could be installed. */
export const hasHaproxy = (): boolean => hasPrograms(() => spawnSync('haproxy', ['-v']).status === 0, ['haproxy']);

/**
 * Starts HAProxy.
 *
 * @param config its configuration
 * @param ask throws as long as it does not answer yet
 * @throws Error with its log if it does not start
 */
export async function startHaproxy(config: string, ask: () => Promise<unknown>): Promise<{ stop(): Promise<void> }> {
  const owner = await unprivilegedOwner();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'haproxy-'));
  if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
  const configFile = path.join(folder, 'haproxy.cfg');
  await writeFile(configFile, config);
  const { answers, log, stop } = startKept(folder, ['haproxy', '-db', '-f', configFile], { signal: 'TERM', owner });
  if (await answers(ask)) return { stop };
  const lines = await log();
  await stop();
  throw new Error(`HAProxy did not start. Its log says:\n${lines}`);
}

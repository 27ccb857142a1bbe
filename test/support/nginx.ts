import { spawnSync } from 'node:child_process';
import { chown, mkdtemp, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { hasPrograms } from './debian_packages.ts';
import { startKept, unprivilegedOwner } from './kept_process.ts';

/** Whether nginx is there, or could be installed. */
export const hasNginx = (): boolean => hasPrograms(() => spawnSync('nginx', ['-v']).status === 0, ['nginx-light']);

/**
 * Starts nginx.
 *
 * @param config what a distribution includes in its http block
 * @param ask throws as long as it does not answer yet
 * @throws Error with its log if it does not start
 */
export async function startNginx(config: string, ask: () => Promise<unknown>): Promise<{ stop(): Promise<void> }> {
  const owner = await unprivilegedOwner();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'nginx-'));
  if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
  const included = path.join(folder, 'placement.conf');
  await writeFile(included, config);
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (each) => `${each}_temp_path ${folder}/${each};`,
  );
  const main = path.join(folder, 'nginx.conf');
  await writeFile(
    main,
    `daemon off;\npid ${folder}/nginx.pid;\nerror_log stderr;\nevents { worker_connections 1024; }\n` +
      `http {\n  access_log off;\n  ${paths.join('\n  ')}\n  include ${included};\n}\n`,
  );
  const { answers, log, stop } = startKept(folder, ['nginx', '-e', 'stderr', '-c', main], { signal: 'TERM', owner });
  if (await answers(ask)) return { stop };
  const lines = await log();
  await stop();
  throw new Error(`nginx did not start. Its log says:\n${lines}`);
}

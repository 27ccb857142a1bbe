import { chmod, lstat, rm, stat } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';

/**
 * Makes a server listen on a UNIX socket. The file that a killed process left behind is removed. The server removes its own when it closes.
 *
 * @param mode the permissions of the socket, as `660`
 * @throws Error whose code is EADDRINUSE where another process listens there, and ENOTSOCK where the file is something else
 */
export async function listenOnSocket(server: net.Server, file: string, mode = '600'): Promise<void> {
  await stat(path.dirname(file)); // Node.js calls it a missing permission where there is no such folder
  await removeStale(file);
  const before = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(file, resolve);
      // The socket is made at once, so the umask holds for nothing else.
    });
  } finally {
    process.umask(before);
  }
  await chmod(file, Number.parseInt(mode, 8));
}

async function removeStale(file: string): Promise<void> {
  const stats = await lstat(file).catch(() => undefined);
  if (stats === undefined) return;
  if (!stats.isSocket()) throw Object.assign(new Error('it is no socket'), { code: 'ENOTSOCK' });
  if (await isLive(file)) throw Object.assign(new Error('another program listens on it'), { code: 'EADDRINUSE' });
  await rm(file, { force: true });
}

/** Whether a process listens on a socket. In doubt it does, such as where this user may not connect. */
function isLive(file: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = net.connect(file, () => {
      connection.destroy();
      resolve(true);
    });
    connection.once('error', (error: NodeJS.ErrnoException) => resolve(!isGone.has(error.code ?? '')));
  });
}

const isGone: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOENT']);

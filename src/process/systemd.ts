import { execFile } from 'node:child_process';
import type { Logger } from 'pino';

/**
 * Tells systemd, where a unit of Type=notify started this process, that it serves: `systemctl start` and `restart` wait for that.
 * By systemd's own program, which the unit must let speak (NotifyAccess=all): Node.js cannot send to such a socket.
 *
 * @param status what `systemctl status` shows
 */
export function tellSystemd(status: string, logger: Logger): void {
  if (process.env.NOTIFY_SOCKET === undefined) return;
  execFile('systemd-notify', ['--ready', `--status=${status}`], (err) => {
    if (err !== null) logger.error({ reason: err.message }, 'systemd could not be told that the service is ready');
  });
}

import { execFile } from 'node:child_process';
import type { Logger } from 'pino';

/**
 * If a systemd unit of Type=notify started this process, tells systemd that it is ready: `systemctl start` and
 * `restart` wait for that. The program systemd-notify sends the message, because Node.js cannot send to such a socket.
 * The unit must permit this with NotifyAccess=all.
 *
 * @param status the text that `systemctl status` shows
 */
export function tellSystemd(status: string, logger: Logger): void {
  if (process.env.NOTIFY_SOCKET === undefined) return;
  execFile('systemd-notify', ['--ready', `--status=${status}`], (err) => {
    if (err !== null) logger.error({ reason: err.message }, 'systemd could not be told that the service is ready');
  });
}

import { setTimeout as sleep } from 'node:timers/promises';
import { openMirror } from '../changes/mirror.ts';
import type { Send as SendForMirror } from '../support/requests.ts';
import { until } from '../support/until.ts';
import { complaintAbout, type Send } from './client.ts';

/** A copy of all providers that follows `GET /changes`, by any process. */
export type Follower = {
  /** How often the server no longer knew what had changed (410), and everything was read again. */
  readonly restarts: number;
  /** Reads all changes, and compares the copy with the providers. No write may run meanwhile. @returns what is wrong */
  complaints(): Promise<readonly string[]>;
};

/** Follows from now on, until the process ends. */
export async function startFollower(send: Send): Promise<Follower> {
  const wrong: string[] = [];
  const asking =
    (more: Readonly<Record<string, string>> = {}): SendForMirror =>
    async (method, path, body) => {
      const request = `${method} ${path}`;
      const reply = await send(method, path, body, more);
      const complaint = complaintAbout(reply);
      if (complaint !== undefined) wrong.push(`${request}: ${complaint}`);
      return { request, ...reply };
    };
  const mirror = await openMirror(asking());
  /** A request that is refused or broken leaves the copy and its token as they are. */
  const follow = (waitSeconds: number): Promise<number> =>
    mirror.follow(asking({ prefer: `wait=${waitSeconds}` }), asking()).catch(() => sleep(100, Number.NaN));
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  };
  const goOn = async (): Promise<never> => {
    for (;;) await inTurn(() => follow(2));
  };
  void goOn();
  return {
    get restarts() {
      return mirror.reads - 1;
    },
    complaints: () =>
      inTurn(async () => {
        try {
          await until('nothing more is told', async () => (await follow(0)) === 0);
          await mirror.check(asking());
        } catch (error) {
          wrong.push(String(error));
        }
        return wrong.splice(0);
      }),
  };
}

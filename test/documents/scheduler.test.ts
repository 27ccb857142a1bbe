/** examples/scheduler.py does what it says, also with the token of a team, and ends with 1 where a job was refused. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { teamsPolicy } from '../../src/access/policy/teams.ts';
import { listen } from '../../src/http/server/listen.ts';
import { commandLine } from '../bench/processes.ts';
import { project } from '../client/documentation.ts';
import { forward, startFront } from '../client/servers.ts';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, listAt, makeProvider, newestVersion, requestsTo, type Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';
import { withoutPython } from './blocks.ts';

type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string };
type Env = Readonly<Record<string, string | undefined>>;

/** A pool with two hosts of two processors, tokens of the service, and the policy for teams. */
async function onPool(
  use: (pool: {
    readonly admin: Send;
    readonly url: string;
    readonly folder: string;
    run(jobs: readonly string[], env?: Env, meanwhile?: (child: ChildProcess) => Promise<void>): Promise<Ran>;
  }) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-scheduler-'));
  const policyFile = path.join(folder, 'teams.yaml');
  try {
    await writeFile(policyFile, teamsPolicy());
    const config = { api: { authStrategy: 'tokens' }, osloPolicy: { policyFile } } as const;
    await withTestService(anyEngine, config, async (service) => {
      const admin = requestsTo({ app: service.operatorApp() }, `placement ${newestVersion}`);
      for (const name of ['gpu-1', 'gpu-2']) await makeProvider(admin, randomUUID(), { PGPU: { total: 2 } }, { name });
      const wanted = { user_id: 'robots-ci', project_id: 'robots', roles: ['member'] };
      const member = String(at(accepted(await admin('POST', '/tokens', wanted)).json, 'token'));
      const server = await listen(service.app, { host: '127.0.0.1', port: 0, drainMs: 100 });
      const run = async (
        jobs: readonly string[],
        env: Env = {},
        meanwhile: (child: ChildProcess) => Promise<void> = async () => {},
      ): Promise<Ran> => {
        const child = spawn('python3', [path.join(project, 'examples', 'scheduler.py')], {
          env: {
            ...process.env,
            PLACEMENT_URL: server.url,
            PLACEMENT_PROJECT: 'robots',
            PLACEMENT_TOKEN: member,
            ...env,
          },
          stdio: 'pipe',
        });
        child.stdin.end(jobs.map((job) => `${job}\n`).join(''));
        const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
        const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), meanwhile(child)]);
        return { code: await ended, stdout, stderr };
      };
      try {
        await use({ admin, url: server.url, folder, run });
      } finally {
        await server.close();
      }
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The process ids that jobs have written to a file, if it is there yet. */
const pidsIn = async (file: string): Promise<readonly number[]> =>
  (await readFile(file, 'utf8').catch(() => '')).split('\n').filter(Boolean).map(Number);

const waiting = async (send: Send): Promise<readonly unknown[]> =>
  listAt(accepted(await send('GET', '/waiting')).json, 'waiting');

test(
  'the scheduler runs each job of a team on a host with free processors, and gives all processors back',
  { skip: withoutPython },
  () =>
    onPool(async ({ admin, run }) => {
      // More than fit at once, so that some must wait for others.
      const jobs = [2, 1, 2, 1, 1, 2, 1, 1].map(
        (processors, job) => `${processors} echo job ${job} on $HOST; sleep 0.2`,
      );
      const { code, stdout, stderr } = await run(jobs);
      assert.equal(code, 0, stderr);
      const lines = stdout.trim().split('\n').toSorted();
      assert.equal(lines.length, jobs.length);
      for (const [job, line] of lines.entries()) assert.match(line, new RegExp(`^job ${job} on gpu-[12]$`));
      assert.match(stderr, /^\d echo job \d .*: waits\. No allocation candidates/m);
      assert.deepEqual(at((await admin('GET', '/consumers')).json, 'consumers'), []);
    }),
);

test('the scheduler says why a job is refused, and ends with exit code 1', { skip: withoutPython }, () =>
  onPool(async ({ run }) => {
    const wrong = await run(['1 echo ran', '2 echo ran'], { PLACEMENT_TOKEN: 'plc_wrong' });
    assert.deepEqual([wrong.code, wrong.stdout], [1, '']);
    assert.match(wrong.stderr, /^1 echo ran: The token is not valid/m);
    const other = await run(['1 echo ran'], { PLACEMENT_PROJECT: 'vision' });
    assert.deepEqual([other.code, other.stdout], [1, '']);
    assert.match(other.stderr, /^1 echo ran: Policy does not allow placement:allocations:place/m);
    const failing = await run(['1 false', '1 echo ran']);
    assert.deepEqual([failing.code, failing.stdout, failing.stderr], [1, 'ran\n', '']);
  }),
);

test(
  'the scheduler continues if the answer to its claim is lost, whatever the name of its project',
  { skip: withoutPython },
  () =>
    onPool(async ({ admin, url, run }) => {
      const project_id = 'R&D + 100%/#1';
      const wanted = { user_id: 'ci', project_id, roles: ['member'] };
      const token = String(at(accepted(await admin('POST', '/tokens', wanted)).json, 'token'));
      let lost = 0;
      const front = await startFront((incoming, response) => {
        if (incoming.method === 'PUT' && lost++ === 0) response.once('pipe', () => incoming.socket.destroy());
        forward(url, incoming, response);
      });
      try {
        const env = { PLACEMENT_URL: front.url, PLACEMENT_TOKEN: token, PLACEMENT_PROJECT: project_id };
        const { code, stdout, stderr } = await run(['2 echo on $HOST'], env);
        assert.deepEqual([code, stderr], [0, '']);
        assert.match(stdout, /^on gpu-[12]\n$/);
        assert.ok(front.seen.some(({ method, url: path }) => method === 'GET' && path.startsWith('/allocations/')));
      } finally {
        await front.close();
      }
    }),
);

test(
  'the scheduler continues if the service is away after that for most of the term, or for longer',
  { skip: withoutPython },
  () =>
    onPool(async ({ url, run }) => {
      for (const awayS of [5, 9]) {
        let backMs = Number.POSITIVE_INFINITY;
        let claims = 0;
        const front = await startFront((incoming, response) => {
          if (performance.now() < backMs && claims > 0) {
            incoming.socket.destroy();
            return;
          }
          if (incoming.method === 'PUT' && incoming.url?.startsWith('/allocations/') && claims++ === 0) {
            backMs = performance.now() + awayS * 1000;
            response.once('pipe', () => incoming.socket.destroy());
          }
          forward(url, incoming, response);
        });
        try {
          const jobs = ['2 sleep 5; echo on $HOST'];
          const { code, stdout, stderr } = await run(jobs, { PLACEMENT_URL: front.url, PLACEMENT_TERM: '6' });
          assert.equal(code, 0, `${awayS} s: ${stderr}`);
          assert.match(stderr, /^(No answer from .*\n)?$/);
          assert.match(stdout, /^on gpu-[12]\n$/);
        } finally {
          await front.close();
        }
      }
    }),
);

test('the scheduler stops a job whose term has passed while the service did not answer', { skip: withoutPython }, () =>
  onPool(async ({ run, url }) => {
    let isAway = false;
    const front = await startFront((incoming, response) => {
      // From the first renewal on there is no answer any more.
      isAway ||= incoming.url?.endsWith('/term') === true;
      if (isAway) response.destroy();
      else forward(url, incoming, response);
    });
    const beganMs = performance.now();
    const { code, stderr } = await run(['1 exec sleep 120'], { PLACEMENT_URL: front.url, PLACEMENT_TERM: '6' });
    await front.close();
    assert.deepEqual([code, stderr], [1, '1 exec sleep 120: its claim is lost, and it is stopped\n']);
    const tookS = (performance.now() - beganMs) / 1000;
    assert.ok(tookS >= 4 && tookS < 60, `it took ${tookS} s`);
  }),
);

test('a signal kills the jobs of the scheduler, and deletes its claims and waits', { skip: withoutPython }, () =>
  onPool(async ({ admin, folder, run }) => {
    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
      ['SIGHUP', 129],
    ] as const) {
      const pidFile = path.join(folder, signal);
      const wide = `2 sleep 120 & echo $! >> ${pidFile}; wait`;
      const ran = await run([wide, wide, wide], {}, async (child) => {
        await until('two jobs run', async () => (await pidsIn(pidFile)).length === 2);
        await until('the third one waits', async () => (await waiting(admin)).length === 1);
        child.kill(signal);
      });
      assert.equal(ran.code, code, ran.stderr);
      assert.doesNotMatch(ran.stderr, /Traceback/);
      const pids = await pidsIn(pidFile);
      await until('the processes of its jobs are gone', () => pids.every((pid) => commandLine(pid) === ''));
      assert.deepEqual(at((await admin('GET', '/consumers')).json, 'consumers'), []);
      await until('nothing waits', async () => (await waiting(admin)).length === 0);
    }
  }),
);

test('after a signal the scheduler waits until its claims are deleted', { skip: withoutPython }, () =>
  onPool(async ({ admin, url, folder, run }) => {
    const front = await startFront((incoming, response) => {
      const isRelease = incoming.method === 'DELETE' && incoming.url?.startsWith('/allocations/') === true;
      setTimeout(() => forward(url, incoming, response), isRelease ? 2_000 : 0);
    });
    const pidFile = path.join(folder, 'slow');
    try {
      const ran = await run([`2 echo $$ >> ${pidFile}; sleep 120`], { PLACEMENT_URL: front.url }, async (child) => {
        await until('the job runs', async () => (await pidsIn(pidFile)).length === 1);
        child.kill('SIGTERM');
      });
      assert.deepEqual([ran.code, ran.stderr], [143, '']);
      assert.deepEqual(at((await admin('GET', '/consumers')).json, 'consumers'), []);
    } finally {
      await front.close();
    }
  }),
);

test(
  'the scheduler ends where its address is none, and says of one that does not answer that it goes on',
  { skip: withoutPython },
  () =>
    onPool(async ({ run }) => {
      const none = await run(['1 echo ran'], { PLACEMENT_URL: '127.0.0.1:8778' });
      assert.deepEqual([none.code, none.stdout], [1, '']);
      assert.match(none.stderr, /^1 echo ran: PLACEMENT_URL: .*127\.0\.0\.1:8778/m);
      const { code, stdout, stderr } = await run(
        ['1 echo ran', '1 echo ran'],
        { PLACEMENT_URL: 'http://127.0.0.1:1' },
        async (child) => {
          await once(child.stderr ?? child, 'data');
          child.kill('SIGTERM');
        },
      );
      assert.deepEqual([code, stdout], [143, '']);
      assert.match(stderr, /^No answer from http:\/\/127\.0\.0\.1:1\. It is asked until it answers: /);
      assert.equal(stderr.match(/No answer/g)?.length, 1);
    }),
);

test('the scheduler runs nothing where a line is no job', { skip: withoutPython }, () =>
  onPool(async ({ run }) => {
    const { code, stdout, stderr } = await run(['1 echo ran', 'hello']);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^hello: a line is the number of processors and a command/);
  }),
);

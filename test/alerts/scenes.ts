/** Outages of a real service, as they are recorded for promtool: what happens when, and which alerts fire because of it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { selfSigned } from '../keystone/certificate.ts';
import { servicePassword, withStandIn } from '../keystone/stand_in.ts';
import { startCommand } from '../manage/commands.ts';
import { startRestartable } from '../soak/restartable_postgresql.ts';
import { postgresqlServer } from '../support/engines.ts';
import { createDatabase } from '../support/postgresql.ts';
import { clientOf, type WaitingClient } from '../waiting/client.ts';
import { consumerBody } from '../waiting/scene.ts';

const run = promisify(execFile);

/** A moment of a scene, in seconds since its beginning, and the labels of all alerts that fire then, by their names. */
type Expectation = {
  readonly atSeconds: number;
  readonly firing: Readonly<Record<string, Readonly<Record<string, string>>>>;
};

/** What a scene can do while it is recorded. */
type Stage = {
  /** Waits until this moment. */
  at(seconds: number): Promise<void>;
};

/** Records the metrics of a service from now on, while something happens to it. */
type Recorder = (url: string, happens: (stage: Stage) => Promise<void>) => Promise<void>;

/** An outage. */
export type OutageScene = {
  readonly expected: readonly Expectation[];
  readonly play: (record: Recorder) => Promise<void>;
};

/** The labels that Prometheus adds to all series of the scenes. */
export const scraped = { instance: 'api-1:8778', job: 'placement' } as const;
const job = { job: scraped.job };

const none = (atSeconds: number): Expectation => ({ atSeconds, firing: {} });

type Running = {
  readonly url: string;
  readonly client: WaitingClient;
  readonly child: ReturnType<typeof startCommand>['child'];
  readonly folder: string;
};

/** Calls back with placement-api. @param connection of PostgreSQL; without it, it has the embedded database */
async function withService(
  { connection, config = '' }: { readonly connection?: string; readonly config?: string },
  use: (service: Running) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-alerts-'));
  const file = path.join(folder, 'placement.conf');
  const database = connection === undefined ? `embedded_path = ${folder}/data` : `connection = ${connection}`;
  const api = config.includes('auth_strategy') ? '' : 'auth_strategy = noauth2\n';
  await writeFile(
    file,
    `[placement_database]\n${database}\nsync_on_startup = true\nstatement_timeout = 5\n[api]\nport = 0\n${api}${config}`,
  );
  const { child, ended, said } = startCommand('placement-api', ['--config-file', file], folder);
  try {
    const [, url = ''] = await said(/ listens on (\S+)\n/);
    const client = clientOf(url);
    await use({ url, client, child, folder }).finally(client.close);
  } finally {
    child.kill('SIGKILL');
    await ended;
    await rm(folder, { recursive: true, force: true });
  }
}

/** The same on a database of its own of the PostgreSQL of the tests, with a connection of another program. */
async function withServiceAndSql(
  config: string,
  use: (service: Running, other: pg.Client) => Promise<void>,
): Promise<void> {
  const { url: connection, drop } = await createDatabase(await postgresqlServer());
  const other = new pg.Client({ connectionString: connection });
  await other.connect();
  try {
    await withService({ connection, config }, (service) => use(service, other));
  } finally {
    await other.end();
    await drop();
  }
}

/** Does something each second, whatever comes of it, until the returned function is called. */
function eachSecond(work: () => Promise<unknown>): () => void {
  const timer = setInterval(() => void work().catch(() => {}), 1_000);
  return () => clearInterval(timer);
}

/** A host with inventories. */
async function makeHost({ client }: Running, inventories: object): Promise<string> {
  const uuid = randomUUID();
  await client.send('POST', '/resource_providers', { body: { name: uuid, uuid } });
  const body = { resource_provider_generation: 0, inventories };
  const { status } = await client.send('PUT', `/resource_providers/${uuid}/inventories`, { body });
  assert.equal(status, 200);
  return uuid;
}

/** Claims by query. */
const claim = async ({ client }: Running, body: object, uuid = randomUUID(), wait?: number): Promise<string> => {
  const reply = await client.send('PUT', `/allocations/${uuid}`, { body, ...(wait === undefined ? {} : { wait }) });
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  return uuid;
};

const database: OutageScene = {
  expected: [
    none(105),
    { atSeconds: 225, firing: { PlacementDatabaseAway: scraped } },
    {
      atSeconds: 375,
      firing: { PlacementDatabaseAway: scraped, PlacementErrors: scraped, PlacementFleetStale: scraped },
    },
    none(765),
  ],
  play: async (record) => {
    const server = await startRestartable();
    try {
      const { url: connection } = await createDatabase(server.url);
      await withService({ connection }, async (service) => {
        await makeHost(service, { PGPU: { total: 10_000 } });
        await record(service.url, async ({ at }) => {
          const stopAsking = eachSecond(async () => {
            await service.client.send('GET', '/resource_providers');
            await claim(service, consumerBody({}));
          });
          await at(120);
          await server.shutDownAtOnce();
          await at(390);
          await server.start();
          await at(780);
          stopAsking();
        });
      });
    } finally {
      await server.stop();
    }
  },
};

/** A service with Keystone, which gets a new token with each request. */
const withKeystone = (
  record: Recorder,
  happens: (stage: Stage, keystone: Parameters<Parameters<typeof withStandIn>[0]>[0]) => Promise<void>,
): Promise<void> =>
  withStandIn((standIn) => {
    const config =
      `auth_strategy = keystone\n[keystone_authtoken]\nauth_url = ${standIn.url}\nusername = placement\npassword = ${servicePassword}\n` +
      'user_domain_name = Default\nproject_name = service\nproject_domain_name = Default\n';
    return withService({ config }, ({ url, client }) =>
      record(url, async (stage) => {
        const stopAsking = eachSecond(() =>
          client.send('GET', '/resource_providers', { token: standIn.issue({ roles: ['admin'], project: 'p' }) }),
        );
        await happens(stage, standIn);
        stopAsking();
      }),
    );
  });

const keystoneAway: OutageScene = {
  expected: [
    none(105),
    { atSeconds: 375, firing: { PlacementKeystoneAway: scraped, PlacementErrors: scraped } },
    none(765),
  ],
  play: (record) =>
    withKeystone(record, async ({ at }, keystone) => {
      await at(120);
      await keystone.down();
      await at(390);
      await keystone.up();
      await at(780);
    }),
};

const keystoneSlow: OutageScene = {
  expected: [none(60), { atSeconds: 345, firing: { PlacementKeystoneSlow: scraped } }, none(705)],
  play: (record) =>
    withKeystone(record, async ({ at }, keystone) => {
      await at(60);
      keystone.behaviour.delayMs = 3_000;
      await at(360);
      keystone.behaviour.delayMs = 0;
      await at(720);
    }),
};

/** Needs the right to mount a file system: the log is alone on a disk, which another program fills. */
const logDisk: OutageScene = {
  expected: [
    none(45),
    { atSeconds: 225, firing: { PlacementLogNotWritten: scraped } },
    { atSeconds: 435, firing: { PlacementLogNotWritten: scraped, PlacementLogDiskFull: scraped } },
    none(495),
  ],
  play: async (record) => {
    const disk = await mkdtemp(path.join(os.tmpdir(), 'placement-alerts-disk-'));
    await run('mount', ['-t', 'tmpfs', '-o', 'size=600m,mode=1777', 'placement-alerts', disk]);
    try {
      await withService({ config: `[DEFAULT]\nlog_dir = ${disk}\n` }, ({ url, client }) =>
        record(url, async ({ at }) => {
          const stopAsking = eachSecond(() => client.send('GET', '/resource_providers'));
          await at(60);
          await run('dd', ['if=/dev/zero', `of=${disk}/other`, 'bs=1M']).catch(() => {}); // it ends when the disk is full
          await at(450);
          await rm(`${disk}/other`);
          await at(510);
          stopAsking();
        }),
      );
    } finally {
      await run('umount', ['--lazy', disk]);
      await rm(disk, { recursive: true });
    }
  },
};

const pool: OutageScene = {
  expected: [
    none(45),
    {
      atSeconds: 780,
      firing: {
        PlacementNearCapacity: { ...job, resourcetype: 'PGPU' },
        PlacementShapeFull: { ...job, shape: 'gpu' },
      },
    },
    {
      atSeconds: 1035,
      firing: {
        PlacementNearCapacity: { ...job, resourcetype: 'PGPU' },
        PlacementShapeFull: { ...job, shape: 'gpu' },
        PlacementClaimsWaitLong: scraped,
      },
    },
    none(1110),
  ],
  play: (record) =>
    withService({ config: '[metrics]\nshapes = gpu: resources=PGPU:1\n' }, async (service) => {
      await makeHost(service, { PGPU: { total: 8 } });
      await record(service.url, async ({ at }) => {
        await at(60);
        const held = await Promise.all(Array.from({ length: 8 }, () => claim(service, consumerBody({}))));
        const waits = claim(service, consumerBody({}), randomUUID(), 3_600);
        await at(1_050);
        for (const uuid of held) await service.client.send('DELETE', `/allocations/${uuid}`);
        await waits;
        await at(1_125);
      });
    }),
};

const terms: OutageScene = {
  expected: [none(45), { atSeconds: 285, firing: { PlacementTermsNotRemoved: scraped } }, none(375)],
  play: (record) =>
    withServiceAndSql('', async (service, other) => {
      await makeHost(service, { PGPU: { total: 8 } });
      await record(service.url, async ({ at }) => {
        await at(60);
        const consumer = await claim(service, { ...consumerBody({}), expires_in: 5 });
        await other.query('begin');
        await other.query(`select from consumers where uuid = '${consumer}' for update`);
        await at(300);
        await other.query('commit');
        await at(390);
      });
    }),
};

const changedUnnoticed: OutageScene = {
  expected: [none(45), { atSeconds: 225, firing: { PlacementFleetDiffered: scraped } }],
  play: (record) =>
    withServiceAndSql('[placement_database]\ncompare_every = 30\n', async (service, other) => {
      await makeHost(service, { PGPU: { total: 8 } });
      await record(service.url, async ({ at }) => {
        await at(60);
        await other.query("set session_replication_role = 'replica'; update inventories set total = 9");
        await at(240);
        const { body } = await service.client.send('GET', '/provider_summaries');
        assert.match(JSON.stringify(body), /"total":9/);
      });
    }),
};

const ids: OutageScene = {
  expected: [none(45), { atSeconds: 465, firing: { PlacementIdsUsed: { ...job, table: 'allocations' } } }],
  play: (record) =>
    withServiceAndSql('', ({ url }, other) =>
      record(url, async ({ at }) => {
        await at(60);
        await other.query("select setval('allocations_id_seq', 1800000000)");
        await at(480);
      }),
    ),
};

const killed: OutageScene = {
  expected: [none(45), { atSeconds: 225, firing: { PlacementDown: scraped } }],
  play: (record) =>
    withService({}, ({ url, child }) =>
      record(url, async ({ at }) => {
        await at(60);
        child.kill('SIGKILL');
        await at(240);
      }),
    ),
};

const certificate: OutageScene = {
  expected: [none(45), { atSeconds: 465, firing: { PlacementCertificateEnds: scraped } }],
  play: async (record) => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-alerts-tls-'));
    const [cert, key] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')];
    const use = async (seconds: number): Promise<void> => {
      const pem = selfSigned(seconds);
      await writeFile(cert, pem.cert);
      await writeFile(key, pem.key);
    };
    try {
      await use(90 * 86_400);
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'; // for the scrapes
      await withService({ config: `[ssl]\ncert_file = ${cert}\nkey_file = ${key}\n` }, ({ url, child }) =>
        record(url, async ({ at }) => {
          await at(60);
          await use(13 * 86_400);
          child.kill('SIGHUP');
          await at(480);
        }),
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  },
};

/** The outages, by the names that the recording has. */
export const scenes: Readonly<Record<string, OutageScene>> = {
  database,
  keystoneAway,
  keystoneSlow,
  logDisk,
  pool,
  terms,
  changedUnnoticed,
  ids,
  killed,
  certificate,
};

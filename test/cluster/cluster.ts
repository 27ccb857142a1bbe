import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setDefaultCACertificates } from 'node:tls';
import { promisify } from 'node:util';
import type { Query } from '../races/server_process.ts';
import { filledTemplate } from '../support/filled_template.ts';
import { freePort } from '../support/free_port.ts';
import { nodeFlags } from '../support/node_flags.ts';
import { carriesPreparedStatements } from '../support/pgbouncer.ts';
import { execute } from '../support/postgresql.ts';
import { until } from '../support/until.ts';
import { startUnit, type Unit } from './supervisor.ts';

const nodeNames = ['n1', 'n2', 'n3'] as const;
export type NodeName = (typeof nodeNames)[number];

/** One node of the database: Patroni and its PostgreSQL. */
export type DatabaseNode = {
  readonly name: NodeName;
  readonly unit: Unit;
  /** The maintenance database of this node itself, as superuser. */
  readonly url: string;
  /** The folder that is a small disk of its own. */
  readonly disk: string;
  /** Whether Patroni says that this node is the primary. */
  isPrimary(): Promise<boolean>;
};

/** The whole cluster on this machine: the files of deploy/cluster, with what each unit of systemd would start. */
export type Cluster = {
  readonly url: string;
  readonly nodes: readonly DatabaseNode[];
  readonly etcd: Unit;
  /** Everything that was started. */
  readonly units: readonly Unit[];
  /** The processes of the service. */
  readonly processes: readonly Unit[];
  /** Where the logs are. */
  readonly folder: string;
  /** Runs a statement on the primary, not through PgBouncer. */
  readonly query: Query;
  /** Commits something on the primary, by a connection of its own, and waits for the synchronous standby. */
  probe(): Promise<void>;
  primary(): Promise<DatabaseNode | undefined>;
  /** Waits until all nodes run and follow, and all processes of the service are ready. */
  untilWhole(): Promise<void>;
  patronictl(...args: readonly string[]): Promise<string>;
  /** Ends everything. @param areLogsKept whether the folder stays, with the logs */
  stop(areLogsKept?: boolean): Promise<void>;
};

const root = path.join(import.meta.dirname, '..', '..');
const password = 'secret';
const local = '127.0.0.1';
const asPostgres = ['runuser', '-u', 'postgres', '--'] as const;

/** Starts all parts. SIGINT and SIGTERM to this process end them. @throws Error if a part does not start */
export async function startCluster(): Promise<Cluster> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-cluster-'));
  chmodSync(folder, 0o755);
  execFileSync('chown', ['postgres', folder]);
  const names = [
    ...['ETCD_PORT', 'ETCD_PEER_PORT', 'DATABASE_PORT', 'PGBOUNCER_PORT', 'API_PORT', 'P1_PORT', 'P2_PORT', 'P3_PORT'],
    ...nodeNames.flatMap((name) => [`${name.toUpperCase()}_PORT`, `${name.toUpperCase()}_REST_PORT`]),
  ];
  const ports: Record<string, number> = {};
  for (const name of names) ports[name] = await freePort();
  const hosts = ['ETCD', 'DATABASE', 'PGBOUNCER', 'API', 'NODE', 'PROCESS', 'N1', 'N2', 'N3', 'P1', 'P2', 'P3'];
  const certificates = path.join(folder, 'certificates');
  const named = nodeNames.flatMap((name) => [name, local]);
  execFileSync('sh', [path.join(root, 'deploy/cluster/certificates.sh'), certificates, ...named], { stdio: 'pipe' });
  execFileSync('chown', ['-R', 'postgres', certificates]);
  // This process only reads what Patroni tells, so it needs no certificate of its own.
  setDefaultCACertificates([await readFile(path.join(certificates, 'ca.pem'), 'utf8')]);
  const values: Readonly<Record<string, string | number>> = {
    ...ports,
    ...Object.fromEntries(hosts.map((name) => [`${name}_HOST`, local])),
    FOLDER: folder,
    NETWORK: '127.0.0.1/32',
    POSTGRESQL_BIN: newestPostgresql(),
    CERTIFICATES: certificates,
    ETCD_CLUSTER: `n1=https://${local}:${ports.ETCD_PEER_PORT}`,
    REST_PASSWORD: password,
    SUPERUSER_PASSWORD: password,
    REPLICATION_PASSWORD: password,
    DATABASE: 'placement',
    DATABASE_USER: 'placement',
    DATABASE_PASSWORD: password,
  };
  const fill = async (template: string, file: string, more: Readonly<Record<string, string | number>> = {}) => {
    const filled = path.join(folder, file);
    await writeFile(filled, await filledTemplate(`cluster/${template}`, { ...values, ...more }));
    execFileSync('chown', ['postgres', filled]);
    return filled;
  };
  const units: Unit[] = [];
  const start = (
    name: string,
    ...[command, more]: Parameters<typeof startUnit> extends [unknown, unknown, ...infer More] ? More : never
  ) => {
    const unit = startUnit(name, path.join(folder, `${name}.log`), command, more);
    units.push(unit);
    return unit;
  };
  const disks = nodeNames.map((name) => path.join(folder, name));
  const stop = async (areLogsKept = false): Promise<void> => {
    await Promise.all(units.map((unit) => unit.stop()));
    // One that could not be mounted fails here, and that is not the error to tell.
    for (const disk of disks) spawnSync('umount', ['--lazy', disk]);
    if (!areLogsKept) await rm(folder, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void stop().finally(() => process.exit(1)));
  }
  const nodes: DatabaseNode[] = [];
  try {
    for (const disk of disks) {
      mkdirSync(disk);
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1g,mode=0755,uid=postgres', 'tmpfs', disk]);
    }
    const etcdFile = await fill('etcd', 'etcd.env', { NODE: 'n1', ETCD_DATA: `${folder}/etcd` });
    const env = Object.fromEntries(
      [...(await readText(etcdFile)).matchAll(/^(ETCD_\w+)=(.*)$/gm)].map(([, ...pair]) => pair),
    );
    const etcd = start('etcd', [...asPostgres, 'etcd'], { env });
    for (const [index, name] of nodeNames.entries()) {
      const disk = disks[index] ?? '';
      const rest = ports[`${name.toUpperCase()}_REST_PORT`] ?? 0;
      const port = ports[`${name.toUpperCase()}_PORT`] ?? 0;
      const config = await fill('patroni.yml', `${name}.yml`, {
        NODE: name,
        DATA: `${disk}/data`,
        POSTGRESQL_PORT: port,
        REST_PORT: rest,
      });
      const postmaster = async () => {
        const pid = Number.parseInt(await readText(`${disk}/data/postmaster.pid`), 10);
        // After a crash the file is still there, and the number may be that of another program.
        return (await readText(`/proc/${pid}/cmdline`)).includes(disk) ? [pid] : [];
      };
      const unit = start(name, [...asPostgres, 'patroni', config], { others: postmaster });
      const isPrimary = () => answers(`https://${local}:${rest}/primary`);
      nodes.push({ name, unit, url: `postgresql://postgres:${password}@${local}:${port}/postgres`, disk, isPrimary });
      if (index === 0) await until('the first node is the primary', isPrimary);
    }
    const patronictl = async (...args: readonly string[]) => {
      const [program, ...more] = [...asPostgres, 'patronictl', '-c', path.join(folder, 'n1.yml'), ...args];
      // Not synchronously: a program that ended must be started again meanwhile, or this may wait for it for ever.
      return (await promisify(execFile)(program, more, { cwd: '/', timeout: 30_000 })).stdout;
    };
    const rests = nodeNames.map((name) => `https://${local}:${ports[`${name.toUpperCase()}_REST_PORT`]}`);
    const isReplicated = async (): Promise<boolean> => {
      const members = await membersBy(rests);
      const roles = members.filter(({ state }) => state === 'running' || state === 'streaming').map(({ role }) => role);
      const others = roles.filter((role) => role !== 'leader' && role !== 'sync_standby');
      return roles.includes('leader') && roles.includes('sync_standby') && others.length === nodeNames.length - 2;
    };
    await until('two nodes follow it', isReplicated);
    start('haproxy', ['haproxy', '-db', '-f', await fill('haproxy.cfg', 'haproxy.cfg')]);
    const superuser = `postgresql://postgres:${password}@${local}:${ports.DATABASE_PORT}`;
    const first = `postgresql://postgres:${password}@${local}:${ports.N1_PORT}/postgres`;
    await execute(first, `create role placement login password '${password}'`);
    await execute(first, 'create table probe as select 0 as commits');
    await execute(first, "create database placement owner placement encoding 'UTF8' template template0");
    await fill('userlist.txt', 'userlist.txt');
    const pgbouncer = await fill('pgbouncer.ini', 'pgbouncer.ini');
    if (carriesPreparedStatements()) await writeFile(pgbouncer, 'max_prepared_statements = 500\n', { flag: 'a' });
    start('pgbouncer', [...asPostgres, 'pgbouncer', pgbouncer]);
    const processes: Unit[] = [];
    for (const name of ['p1', 'p2', 'p3']) {
      const port = ports[`${name.toUpperCase()}_PORT`] ?? 0;
      const config = await fill('placement.conf', `${name}.conf`, { PROCESS_PORT: port });
      const program = path.join(root, 'src', 'bin', 'placement-api.ts');
      processes.push(start(name, [process.execPath, ...nodeFlags, program, '--config-file', config]));
      await until(`${name} is ready`, () => answers(`http://${local}:${port}/readyz`));
    }
    const isWhole = async (): Promise<boolean> => {
      if (!(await isReplicated()) || !(await answers(`http://${local}:${ports.API_PORT}/readyz`))) return false;
      const ready = ['P1', 'P2', 'P3'].map((name) => answers(`http://${local}:${ports[`${name}_PORT`]}/readyz`));
      return (await Promise.all(ready)).every((each) => each);
    };
    const cluster: Cluster = {
      url: `http://${local}:${ports.API_PORT}`,
      nodes,
      etcd,
      units,
      processes,
      folder,
      query: async (statement) => (await execute(`${superuser}/placement`, statement)).rows,
      probe: async () => {
        await execute(`${superuser}/postgres`, 'update probe set commits = commits + 1');
      },
      primary: async () => {
        const are = await Promise.all(nodes.map((node) => node.isPrimary()));
        return nodes[are.indexOf(true)];
      },
      untilWhole: () => until('all parts of the cluster serve again', isWhole),
      patronictl,
      stop,
    };
    await cluster.untilWhole();
    await refuseStrangers(rests, `https://${local}:${ports.ETCD_PORT}`);
    return cluster;
  } catch (error) {
    // Without any log, tail fails.
    console.error(spawnSync('sh', ['-c', `tail -n 15 ${folder}/*.log`], { encoding: 'utf8' }).stdout);
    await stop();
    throw error;
  }
}

/**
 * Without a certificate of the cluster, nothing may be changed by Patroni's REST API, and etcd may be neither read nor written.
 *
 * @throws Error if something is let through
 */
async function refuseStrangers(rests: readonly string[], etcd: string): Promise<void> {
  const allowed: string[] = [];
  const authorization = `Basic ${Buffer.from(`patroni:${password}`).toString('base64')}`;
  const changes = [
    ['PATCH', '/config', '{"ttl": 20}'],
    ['POST', '/restart', '{}'],
    ['POST', '/switchover', '{"leader": "n1"}'],
  ] as const;
  for (const rest of rests) {
    for (const [method, target, body] of changes) {
      // Also with the password, which alone is not enough.
      for (const headers of [{}, { authorization }]) {
        const { status } = await fetch(`${rest}${target}`, { method, body, headers });
        if (status !== 401 && status !== 403) allowed.push(`${method} ${target}: ${status}`);
      }
    }
  }
  for (const scheme of ['https', 'http']) {
    const url = `${etcd.replace('https', scheme)}/v2/keys/`;
    const answer = await get(url).catch(() => undefined);
    if (answer?.ok) allowed.push(`GET ${url}: ${answer.status}`);
  }
  if (allowed.length > 0) throw new Error(`Without a certificate: ${allowed.join(', ')}`);
}

type Member = { readonly role: string; readonly state: string };

/** The nodes, as the first Patroni that answers knows them. */
async function membersBy(rests: readonly string[]): Promise<readonly Member[]> {
  for (const rest of rests) {
    try {
      const { members } = (await (await get(`${rest}/cluster`)).json()) as { readonly members: readonly Member[] };
      return members;
    } catch {
      // it does not answer: the next one
    }
  }
  return [];
}

const readText = (file: string): Promise<string> => readFile(file, 'utf8').catch(() => '');

const get = (url: string): Promise<Response> => fetch(url, { signal: AbortSignal.timeout(1_000) });

async function answers(url: string): Promise<boolean> {
  try {
    return (await get(url)).status === 200;
  } catch {
    return false;
  }
}

function newestPostgresql(): string {
  const folder = '/usr/lib/postgresql';
  const [newest] = readdirSync(folder).sort((one, other) => Number(other) - Number(one));
  return `${folder}/${newest}/bin`;
}

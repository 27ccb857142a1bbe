/** A power failure loses nothing that the service on the embedded database has acknowledged: only what was synced is left. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { openService } from '../../src/start/service.ts';
import { type Random, randomFrom, seedFor } from '../races/random.ts';
import { accepted, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';
import { embeddedTemplate, fillEmbedded } from '../support/templates.ts';
import { type SyncedDisk, watchSyncs } from './synced_disk.ts';

const onLinux = process.platform === 'linux' ? {} : { skip: 'it needs /proc' };

/** Calls back with a folder whose syncs are watched, and with another one for what is left of it. */
async function onDisk(use: (disk: SyncedDisk, folder: string, left: string) => Promise<void>): Promise<void> {
  const base = await mkdtemp(path.join(os.tmpdir(), 'placement-power-'));
  const [folder, left] = [path.join(base, 'disk'), path.join(base, 'left')];
  await mkdir(folder);
  await mkdir(left);
  const disk = await watchSyncs(folder);
  try {
    await use(disk, folder, left);
  } finally {
    disk.stop();
    await rm(base, { recursive: true, force: true });
  }
}

/**
 * Power failures whose remains are checked later: of each one twice, with only what was synced, and with a part of the
 * rest as well.
 */
function powerFailures(disk: SyncedDisk, left: string, random: Random) {
  const remains: { readonly when: string; readonly folder: string; readonly acknowledged: readonly string[] }[] = [];
  return {
    happen: (when: string, acknowledged: ReadonlySet<string>): void => {
      for (const percent of [0, 50]) {
        const folder = path.join(left, randomUUID());
        disk.cut(folder, () => random.percent(percent));
        const more = `${when}, and ${percent} % of the rest`;
        remains.push({ when: more, folder: path.join(folder, 'data'), acknowledged: [...acknowledged] });
      }
    },
    check: async (): Promise<void> => {
      for (const { when, folder, acknowledged } of remains.splice(0)) {
        const found = await consumersIn(folder).catch((cause) => {
          throw new Error(`The database cannot be opened: power failure ${when}`, { cause });
        });
        const lost = acknowledged.filter((uuid) => !found.has(uuid));
        assert.deepEqual(lost, [], `${acknowledged.length} acknowledged, power failure ${when}`);
        await rm(folder, { recursive: true });
      }
    },
  };
}

/** The UUIDs of the consumers that have allocations. */
async function consumersIn(embeddedPath: string): Promise<Set<string>> {
  const database = await openDatabase({ embeddedPath });
  try {
    const { rows } = await sql<{ uuid: string }>`
      select uuid from consumers where uuid in (select consumer_id from allocations)`.execute(database.kysely);
    return new Set(rows.map(({ uuid }) => uuid));
  } finally {
    await database.close();
  }
}

const serviceIn = async (embeddedPath: string) =>
  openService(testConfig({ placementDatabase: { connection: undefined, embeddedPath } }), {
    embedded: { template: await embeddedTemplate() },
  });

test('acknowledged claims are there after a power failure, also while a checkpoint is made', onLinux, async (t) => {
  const random = randomFrom(seedFor(t));
  await onDisk(async (disk, folder, left) => {
    const failures = powerFailures(disk, left, random);
    const acknowledged = new Set<string>();
    const service = await serviceIn(path.join(folder, 'data'));
    const send = requestsTo(service);
    const hosts = Array.from({ length: 4 }, () => randomUUID());
    const claim = async (): Promise<void> => {
      const consumer = randomUUID();
      const host = random.pick(hosts);
      accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 1 } })));
      acknowledged.add(consumer);
    };
    const claims = (count: number) => Promise.all(Array.from({ length: count }, claim));
    /** Does something during which a power failure happens before each sync for which `at` is true. */
    const during = async (what: string, work: () => Promise<unknown>, at: (file: string, nth: number) => boolean) => {
      let nth = 0;
      let happened = 0;
      disk.beforeSync = (file) => {
        nth += 1;
        if (!at(file, nth)) return;
        happened += 1;
        failures.happen(`${what}, before sync ${nth}, of ${path.relative(folder, file)}`, acknowledged);
      };
      await work();
      disk.beforeSync = () => {};
      assert.ok(happened > 0, `a power failure ${what}`);
      await failures.check();
    };
    try {
      for (const host of hosts) await makeProvider(send, host, { VCPU: { total: 1000 } });
      for (let each = 0; each < 3; each += 1) await claim();
      failures.happen('after claims one by one', acknowledged);
      await failures.check();

      await during(
        'while batches are written',
        () => claims(40).then(() => claims(40)),
        (_, nth) => nth % 2 === 0,
      );
      failures.happen('after batches', acknowledged);
      await failures.check();

      // A data file in the middle, the file that says where the log begins, and the first one after it.
      const checkpoint = () => sql`checkpoint`.execute(service.database.kysely);
      let control = Number.POSITIVE_INFINITY;
      await during('while a checkpoint is made', checkpoint, (file, nth) => {
        if (file.endsWith('/pg_control')) control = nth;
        return nth === 20 || file.endsWith('/pg_control') || nth === control + 1;
      });
      await claims(5);
      failures.happen('after a checkpoint and more claims', acknowledged);
      await failures.check();
    } finally {
      await service.close();
    }
    failures.happen('after the end of the service', acknowledged);
    await failures.check();
  });
});

test('a database whose creation was interrupted by a power failure is created again', onLinux, async (t) => {
  const random = randomFrom(seedFor(t));
  await onDisk(async (disk, folder, left) => {
    const failures = powerFailures(disk, left, random);
    const data = path.join(folder, 'data');
    let syncs = 0;
    disk.beforeSync = (file) => {
      syncs += 1;
      if (syncs === 200 || file === data) failures.happen(`before sync ${syncs}, of ${file}`, new Set());
    };
    await fillEmbedded(data);
    disk.beforeSync = () => {};
    const copies = await readdir(left);
    assert.ok(syncs > 200 && copies.length >= 4);
    const template = await embeddedTemplate();
    for (const copy of copies) {
      const database = await openDatabase({ embeddedPath: path.join(left, copy, 'data'), template });
      await sql`select from allocations`.execute(database.kysely).finally(database.close);
    }
  });
});

for (const [what, make] of [
  [
    'made by a release that did not sync',
    async (data: string) => {
      await fillEmbedded(data);
      await rm(path.join(data, 'postgresql', 'synced'));
    },
  ],
  [
    'restored from a backup',
    async (data: string) => {
      await fillEmbedded(`${data}.backup`);
      await cp(`${data}.backup`, data, { recursive: true });
    },
  ],
] as const) {
  test(`a database that was ${what} is on the disk once it is open`, onLinux, async (t) => {
    const random = randomFrom(seedFor(t));
    await onDisk(async (disk, folder, left) => {
      const data = path.join(folder, 'data');
      disk.stop();
      await make(data);
      const watched = await watchSyncs(folder);
      try {
        const failures = powerFailures(watched, left, random);
        const database = await openDatabase({ embeddedPath: data });
        failures.happen('after the start', new Set());
        await database.close();
        await failures.check();
        let syncs = 0;
        watched.beforeSync = () => {
          syncs += 1;
        };
        await (await openDatabase({ embeddedPath: data })).close();
        assert.ok(syncs < 100, 'at the next start only what PostgreSQL asks for');
      } finally {
        watched.stop();
      }
    });
  });
}

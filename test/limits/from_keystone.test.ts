/** `placement-manage limits import --from-keystone`, with a stand-in for Keystone; test/upstream has the real one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readClassNames } from '../../db/statements/names/resource_classes.ts';
import { identityUrl } from '../../src/access/keystone/settings.ts';
import { readUnifiedLimits } from '../../src/access/keystone/unified_limits.ts';
import { openService } from '../../src/start/service.ts';
import { completeSettings } from '../keystone/keystones.ts';
import { type StandIn, servicePassword, settingsFor, withStandIn } from '../keystone/stand_in.ts';
import { type CommandWorld, type Ended, withCommands } from '../manage/commands.ts';
import { anyEngine } from '../support/engines.ts';
import { accepted, requestsTo } from '../support/requests.ts';
import { testConfig, withTestService } from '../support/services.ts';

type Import = (...args: readonly string[]) => Promise<Ended>;

const registered = (name: string, value: number, more: object = {}) => ({
  id: `r-${name}`,
  service_id: 's1',
  region_id: null,
  resource_name: name,
  default_limit: value,
  ...more,
});
const ofProject = (project: string | null, name: string, value: number, more: object = {}) => ({
  id: `l-${project}-${name}`,
  service_id: 's1',
  region_id: null,
  resource_name: name,
  resource_limit: value,
  project_id: project,
  domain_id: null,
  ...more,
});
const catalog = [
  { id: 's1', name: 'nova', type: 'compute' },
  { id: 's2', name: 'glance', type: 'image' },
];

/** Shows limits from now on. */
function show(standIn: StandIn, defaults: readonly object[], limits: readonly object[], more: object = {}): void {
  standIn.behaviour.isInSystem = true;
  standIn.behaviour.shown = {
    '/v3/services': { services: catalog, links: {} },
    '/v3/limits/model': { model: { name: 'flat', description: 'no project is above another' } },
    '/v3/registered_limits': { registered_limits: defaults, links: {} },
    '/v3/limits': { limits, links: {} },
    ...more,
  };
}

const withImport = (use: (imported: Import, standIn: StandIn, world: CommandWorld) => Promise<void>): Promise<void> =>
  withStandIn(async (standIn) => {
    const keystone = `[keystone_authtoken]
auth_url = ${standIn.url}
username = placement
password = ${servicePassword}
user_domain_name = Default
http_request_max_retries = 0
`;
    const withWorld = (world: CommandWorld) =>
      use((...args) => world.run('placement-manage', 'limits', 'import', '--from-keystone', ...args), standIn, world);
    await withCommands(anyEngine, 'migrated', withWorld, keystone);
  });

/** The limits that the service shows, by project and as defaults. */
async function shownBy({ config }: CommandWorld, ...projects: readonly string[]): Promise<unknown> {
  const service = await openService(testConfig({ placementDatabase: config }));
  try {
    const send = requestsTo(service, 'placement 2.7');
    const { resources, consumers } = accepted(await send('GET', '/default_limits')).json as Record<string, unknown>;
    const own = await Promise.all(
      projects.map(async (project) => accepted(await send('GET', `/limits/${project}`)).json),
    );
    return { resources, consumers, own };
  } finally {
    await service.close();
  }
}

test('limits are imported, and follow the limits of Keystone', async () => {
  await withImport(async (imported, standIn, world) => {
    const defaults = [
      registered('class:VCPU', 20),
      registered('servers', 10),
      registered('server_groups', 3),
      registered('image_size_total', 9, { service_id: 's2' }),
    ];
    show(standIn, defaults, [ofProject('p1', 'class:VCPU', 8), ofProject('p2', 'class:VCPU', -1)]);
    const dry = await imported('--dry-run');
    assert.deepEqual([dry.code, dry.stderr], [0, '']);
    assert.match(dry.stdout, /^Would be stored: the limits of project p1: VCPU 8$/m);
    assert.deepEqual(await shownBy(world), { resources: {}, consumers: {}, own: [] });

    const first = await imported();
    assert.deepEqual(first, {
      code: 0,
      stderr: '',
      stdout: `Keystone, service nova, without a region: registered limits: 3, project limits: 2.
Left out: server_groups: only class:NAME and servers can be imported.
stored: the limits of project p1: VCPU 8
stored: the limits of project p2: VCPU unlimited
stored: the defaults: VCPU 20, consumers all 10
3 changed, 0 unchanged, 1 left out.
`,
    });
    const all = { all: { limit: 10, used: 0, from: 'default' } };
    assert.deepEqual(await shownBy(world, 'p1', 'p2'), {
      resources: { VCPU: 20 },
      consumers: { all: 10 },
      own: [
        {
          project_id: 'p1',
          resources: { VCPU: { limit: 8, used: 0, from: 'project' } },
          consumers: all,
          generation: 1,
        },
        {
          project_id: 'p2',
          resources: { VCPU: { limit: null, used: 0, from: 'project' } },
          consumers: all,
          generation: 1,
        },
      ],
    });

    show(standIn, [registered('class:VCPU', 20)], [ofProject('p1', 'class:VCPU', 9)]);
    const second = await imported('--service', 's1');
    assert.match(second.stdout, /^replaced: the defaults: VCPU 20$/m);
    assert.match(second.stdout, /^replaced: the limits of project p1: VCPU 9$/m);
    assert.match(second.stdout, /^deleted, since Keystone has none: the limits of project p2$/m);
    const third = await imported('--service', 'nova');
    assert.match(third.stdout, /^0 changed, 2 unchanged, 0 left out\.$/m);
  });
});

test('a project whose limits the API has set since keeps them', async () => {
  await withImport(async (imported, standIn, world) => {
    show(standIn, [], [ofProject('p1', 'class:VCPU', 8)]);
    assert.equal((await imported()).code, 0);
    const service = await openService(testConfig({ placementDatabase: world.config }));
    const body = { resources: { VCPU: 2 }, generation: 1 };
    accepted(await requestsTo(service, 'placement 2.7')('PUT', '/limits/p1', body));
    await service.close();
    const { stdout } = await imported();
    assert.match(stdout, /^Left out: project p1: the limits were set by the API, and stay as they are\.\n0 changed/m);
  });
});

test('the names of classes that an import reads are those of the fleet', async () => {
  await withTestService(anyEngine, {}, async ({ database, fleet }) => {
    const names = await readClassNames(database);
    assert.deepEqual(names.toSorted(), [...fleet.known.classes.byName.keys()].toSorted());
  });
});

test('limits of several regions need a choice', async () => {
  await withImport(async (imported, standIn) => {
    const [one, two] = [{ region_id: 'RegionOne' }, { region_id: 'RegionTwo' }];
    const all = [registered('class:VCPU', 1, one), registered('class:VCPU', 2, two), registered('class:VCPU', 3)];
    show(standIn, all, []);
    const unclear = await imported();
    assert.deepEqual([unclear.code, unclear.stdout], [1, '']);
    assert.match(unclear.stderr, /has limits of several regions\. Choose by --region: RegionOne, RegionTwo, none\./);
    assert.match(
      (await imported('--region', 'RegionThree')).stderr,
      /no limits of region RegionThree, so nothing is changed\. It has some of: RegionOne/,
    );
    assert.match((await imported('--region', 'RegionTwo')).stdout, /^stored: the defaults: VCPU 2$/m);
    assert.match((await imported('--region', 'none')).stdout, /^replaced: the defaults: VCPU 3$/m);
  });
});

test('an import that fails prints the reason in a sentence, and stores nothing', async () => {
  await withImport(async (imported, standIn, world) => {
    const cases: readonly (readonly [change: () => void, reason: RegExp, args?: readonly string[]])[] = [
      [() => show(standIn, [], []), /Service compute has no limits in Keystone, so nothing is changed/],
      [() => show(standIn, [], []), /no service ironic\. It has nova \(compute\) s1, glance/, ['--service', 'ironic']],
      [
        () => show(standIn, [], [], { '/v3/services': { services: [...catalog, { ...catalog[0], id: 's3' }] } }),
        /Several services are called compute; give an id: nova \(compute\) s1, nova \(compute\) s3/,
      ],
      [
        () => show(standIn, [], [], { '/v3/limits/model': { model: { name: 'strict_two_level' } } }),
        /the model strict_two_level/,
      ],
      [
        () => show(standIn, [], [], { '/v3/limits': { limits: [ofProject('p1', 'servers', 1)], truncated: true } }),
        /only a part of \/limits\?service_id=s1\. Raise list_limit/,
      ],
      [
        () => show(standIn, [], [ofProject('p1', 'servers', 1, { resource_limit: 'many' })]),
        /to GET \/limits\?service_id=s1 has an unknown form/,
      ],
      [
        () => {
          show(standIn, [registered('servers', 1)], []);
          standIn.behaviour.isInSystem = false;
        },
        /needs a role in the system scope: openstack role add .* reader$/m,
      ],
    ];
    for (const [change, reason, args = []] of cases) {
      change();
      const { code, stdout, stderr } = await imported(...args);
      assert.deepEqual([code, stdout], [1, ''], stderr);
      assert.match(stderr, reason);
      assert.ok(!stderr.includes(servicePassword));
    }
    await standIn.down();
    const away = await imported();
    assert.equal(away.code, 69); // EX_UNAVAILABLE
    assert.ok(away.stderr.includes(`Keystone cannot be reached at ${identityUrl(standIn.url)}`), away.stderr);
    await standIn.up();
    assert.deepEqual(await shownBy(world), { resources: {}, consumers: {}, own: [] });
  });
});

test('limits of domains are read as such, and those of the service and the region alone', () =>
  withStandIn(async (standIn) => {
    const ofDomain = (domain: string, value: number, more: object = {}) =>
      ofProject(null, 'VCPU', value, { domain_id: domain, ...more });
    const others = [ofDomain('other', 3, { region_id: 'R' }), ofDomain('other', 4, { service_id: 's2' })];
    show(standIn, [registered('VCPU', 1)], [ofDomain('domain', 2), ofProject('project', 'VCPU', 5), ...others]);
    const read = await readUnifiedLimits(completeSettings(settingsFor(standIn)), { service: 'nova', region: 'none' });
    assert.deepEqual(read.domains, [{ name: 'VCPU', value: 2, domain: 'domain' }]);
    assert.deepEqual(read.limits, [{ name: 'VCPU', value: 5, project: 'project' }]);
  }));

/** The dashboard uses only metrics that the service exports, and shows all that it should show. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { suite, test } from 'node:test';
import { defaultConfig } from '../../src/config/config.ts';
import { openLog } from '../../src/log/log.ts';
import { settingsFor, withStandIn } from '../keystone/stand_in.ts';
import { anyEngine, withFreshDatabase } from '../support/engines.ts';
import { makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { openServiceOn, withTestService } from '../support/services.ts';
import { readQuery } from './promql.ts';

type Target = { readonly expr: string; readonly legendFormat: string; readonly datasource: { readonly uid: string } };
type Panel = {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly Target[];
};
type Dashboard = {
  readonly uid: string;
  readonly title: string;
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly query: unknown }[];
  };
};

const file = path.join(import.meta.dirname, '..', '..', 'docs', 'grafana-dashboard.json');
// The tests below check that it has this form.
const dashboard = JSON.parse(await readFile(file, 'utf8')) as Dashboard;
const targets = dashboard.panels.flatMap(({ title, targets: ofPanel = [] }) =>
  ofPanel.map((target) => ({ title, ...target })),
);

/** The labels that Prometheus adds itself, and the label of the buckets of a histogram. */
const addedLabels = ['instance', 'job'];

const host = '8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11';

/** The metrics of two services: one has a provider, and has answered requests with a claim; the other has Keystone, TLS and a log file. */
async function exported(): Promise<Exposition> {
  return new Map([...(await exportedWithKeystone()), ...(await exportedWithClaims())]);
}

const exportedWithKeystone = (): Promise<Exposition> =>
  withStandIn((standIn) =>
    withFreshDatabase(anyEngine, async (database) => {
      const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-dashboard-'));
      const log = openLog({ ...defaultConfig.default, logFile: path.join(folder, 'placement.log') });
      const overrides = { api: { authStrategy: 'keystone' }, keystoneAuthtoken: settingsFor(standIn) } as const;
      const service = await openServiceOn(database, overrides, {
        logger: log.logger,
        logHealth: log.health,
        tlsEndsMs: Date.now,
      });
      try {
        return readExposition(await (await service.app.request('/metrics')).text());
      } finally {
        await service.close();
        await rm(folder, { recursive: true });
      }
    }),
  );

async function exportedWithClaims(): Promise<Exposition> {
  return withTestService(anyEngine, { metrics: { shapes: 'small: resources=VCPU:2' } }, async (service) => {
    const send = requestsTo(service);
    await makeProvider(send, host, { VCPU: { total: 8 } });
    await send('PUT', '/allocations/1b1d3c4e-1111-4222-8333-444455556666', newClaim({ [host]: { VCPU: 3 } }));
    return readExposition((await send('GET', '/metrics')).text);
  });
}

suite('the Grafana dashboard', () => {
  test('uses names and labels that a running service exports, and rates only of counters', async () => {
    const exposition = await exported();
    for (const { title, expr, legendFormat } of targets) {
      const { selectors, grouped } = readQuery(expr);
      const known = new Set(addedLabels);
      for (const { metric, labels, isRate } of selectors) {
        const series = exposition.get(metric);
        assert.ok(series, `${title}: ${metric} is exported`);
        for (const label of series.labels) known.add(label);
        for (const label of labels) {
          assert.ok(
            series.labels.has(label) || addedLabels.includes(label),
            `${title}: ${metric} has the label ${label}`,
          );
        }
        const isCounter = series.type === 'counter' || series.type === 'histogram';
        assert.equal(
          isRate,
          isCounter,
          `${title}: ${metric}, a ${series.type}, is ${isRate ? '' : 'not '}queried as a rate`,
        );
      }
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
      for (const label of [...grouped, ...shown])
        assert.ok(known.has(label), `${title}: the label ${label} is exported`);
      const kept = grouped.length > 0 ? grouped : [...known];
      for (const label of shown) assert.ok(kept.includes(label), `${title}: ${label} of the legend is grouped by`);
    }
  });

  test('shows every metric of the service', async () => {
    const queried = new Set(targets.flatMap(({ expr }) => readQuery(expr).selectors.map(({ metric }) => metric)));
    const own = [...(await exported()).keys()].filter((name) => /^placement_.*(?<!_sum|_count)$/.test(name));
    const others = [
      'openstack_placement_resource_total',
      'openstack_placement_resource_reserved',
      'openstack_placement_resource_used',
      'openstack_placement_resource_allocation_ratio',
      'nodejs_eventloop_lag_p99_seconds',
      'process_resident_memory_bytes',
    ];
    assert.deepEqual(
      [...own, ...others].filter((metric) => !queried.has(metric)),
      [],
    );
    for (const quantile of ['0.5', '0.95', '0.99']) {
      assert.ok(
        targets.some(({ expr }) => expr.startsWith(`histogram_quantile(${quantile}, sum by (le, method, route)`)),
      );
    }
  });

  test('is valid for Grafana 11: panels with unique ids that do not overlap, and one data source to choose', () => {
    assert.equal(dashboard.schemaVersion, 39);
    assert.deepEqual([dashboard.uid, dashboard.title], ['placement', 'Placement']);
    const variables = dashboard.templating.list.map(({ name }) => name);
    assert.deepEqual(variables, ['datasource', 'instance', 'resourcetype']);
    for (const { title, datasource, expr } of targets) {
      assert.equal(datasource.uid, `\${${variables[0]}}`, title);
      for (const [, name = ''] of expr.matchAll(/\$(\w+)/g)) {
        assert.ok(name === '__rate_interval' || variables.includes(name), `${title}: $${name}`);
      }
    }
    const { panels } = dashboard;
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    const taken = new Map<string, string>();
    for (const { title, type, gridPos, targets: ofPanel = [] } of panels) {
      assert.equal(type === 'row', ofPanel.length === 0, title);
      assert.ok(gridPos.x + gridPos.w <= 24, title);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          assert.equal(taken.get(`${x} ${y}`), undefined, `${title} has a place of its own`);
          taken.set(`${x} ${y}`, title);
        }
      }
    }
  });
});

/** The metrics of a scrape, by name. A histogram also has its series here. */
type Exposition = ReadonlyMap<string, { readonly type: string; readonly labels: ReadonlySet<string> }>;

/**
 * Reads names, types and labels from the text format of Prometheus. test/http/probes.test.ts checks the format itself.
 */
function readExposition(text: string): Exposition {
  const types = new Map<string, string>();
  const found = new Map<string, { type: string; labels: Set<string> }>();
  for (const line of text.split('\n')) {
    const [, typed, type] = /^# TYPE (\w+) (\w+)$/.exec(line) ?? [];
    if (typed !== undefined && type !== undefined) types.set(typed, type);
    const [, name, labels = ''] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    if (name === undefined) continue;
    const seen = found.get(name) ?? {
      type: types.get(name) ?? types.get(name.replace(/_(bucket|sum|count)$/, '')) ?? 'untyped',
      labels: new Set<string>(),
    };
    for (const [, label = ''] of labels.matchAll(/(?:^|,)(\w+)="(?:[^"\\]|\\.)*"/g)) seen.labels.add(label);
    found.set(name, seen);
  }
  return found;
}

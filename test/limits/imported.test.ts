/** What an import of unified limits changes, decided without a database. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StoredLimits, StoredValues } from '../../db/statements/limits.ts';
import type { UnifiedLimits } from '../../src/access/keystone/unified_limits.ts';
import { planImport } from '../../src/manage/imported_limits.ts';

const classes = new Set(['VCPU', 'MEMORY_MB', 'CUSTOM_GPU']);
const service = { id: 's1', name: 'nova', type: 'compute' };
const unified = (part: Partial<UnifiedLimits>): UnifiedLimits => ({
  service,
  region: null,
  registered: [],
  limits: [],
  domains: [],
  ...part,
});
const ofProject = (project: string, name: string, value: number) => ({ project, name, value });
const values = (resources: StoredValues['resources'], consumers: StoredValues['consumers'] = {}): StoredValues => ({
  resources,
  consumers,
});
const row = (project: string, of: StoredValues, more: Partial<StoredLimits> = {}): StoredLimits => ({
  project,
  generation: 3,
  isImported: true,
  ...of,
  ...more,
});

test('classes and servers are taken over, and -1 lifts the default of a project', () => {
  const found = unified({
    registered: [
      { name: 'class:VCPU', value: 20 },
      { name: 'class:MEMORY_MB', value: -1 },
      { name: 'servers', value: 10 },
    ],
    limits: [ofProject('p1', 'class:VCPU', -1), ofProject('p1', 'servers', 0), ofProject('p2', 'class:CUSTOM_GPU', 4)],
  });
  assert.deepEqual(planImport(found, [], classes), {
    changes: [
      { project: 'p1', values: values({ VCPU: null }, { all: 0 }), known: null },
      { project: 'p2', values: values({ CUSTOM_GPU: 4 }), known: null },
      // After the projects, which may have more.
      { project: '', values: values({ VCPU: 20 }, { all: 10 }), known: null },
    ],
    unchanged: 0,
    leftOut: [],
  });
});

test('an import names values that cannot be limits of a project', () => {
  const found = unified({
    registered: [
      { name: 'server_key_pairs', value: 100 },
      { name: 'class:CUSTOM_UNKNOWN', value: 1 },
    ],
    limits: [ofProject('p1', 'class:VCPU', 2 ** 31), ofProject('p1', 'class:CUSTOM_UNKNOWN', 2)],
    domains: [{ domain: 'd1', name: 'class:VCPU', value: 1 }],
  });
  const { changes, leftOut } = planImport(found, [], classes);
  assert.deepEqual(changes, []);
  assert.deepEqual(leftOut, [
    'server_key_pairs: only class:NAME and servers can be imported',
    'class:CUSTOM_UNKNOWN: there is no resource class CUSTOM_UNKNOWN',
    'class:VCPU = 2147483648 of project p1: the value must be from -1 to 2147483647',
    'class:VCPU of domain d1: it is of a domain, not of a project',
  ]);
});

test('only what an import has stored is replaced or deleted, and only where it differs', () => {
  const found = unified({
    registered: [{ name: 'class:VCPU', value: 20 }],
    limits: [
      ofProject('same', 'class:VCPU', 5),
      ofProject('other', 'class:VCPU', 6),
      ofProject('by hand', 'class:VCPU', 7),
    ],
  });
  const stored = [
    row('', values({ VCPU: 10 }), { isImported: false }),
    row('same', values({ VCPU: 5 })),
    row('other', values({ VCPU: 6 }, { all: 1 })),
    row('by hand', values({ VCPU: 1 }), { isImported: false }),
    row('gone', values({ VCPU: 1 })),
    row('gone by hand', values({ VCPU: 1 }), { isImported: false }),
  ];
  assert.deepEqual(planImport(found, stored, classes), {
    changes: [
      { project: 'other', values: values({ VCPU: 6 }), known: 3 },
      { project: 'gone', values: undefined, known: 3 },
    ],
    unchanged: 1,
    leftOut: [
      'the defaults: the limits were set by the API, and stay as they are',
      'project by hand: the limits were set by the API, and stay as they are',
    ],
  });
});

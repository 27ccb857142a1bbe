import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { at, newClaim } from '../support/requests.ts';
import { errorOf, placed, withHosts } from './placed.ts';

const long = `resources=VCPU:1&required=${'HW_CPU_X86_AVX,'.repeat(7000)}HW_CPU_X86_AVX`;

/** Values of `candidates`, and what the error must say of each beside the consumer. */
const wrong: readonly (readonly [candidates: unknown, ...parts: readonly string[]])[] = [
  [5, "'candidates'", '5'],
  [null, "'candidates'", 'None'],
  [{ resources: 'VCPU:1' }, "'candidates'", 'VCPU:1'],
  [{ toString: {} }, "'candidates'", 'toString'],
  [['resources=VCPU:1', { toString: 5, valueOf: null }], "'candidates'", 'valueOf'],
  [[], "'candidates'", '0 queries'],
  [Array.from({ length: 9 }, () => 'resources=VCPU:1'), "'candidates'", '9 queries'],
  [['resources=VCPU:1', 7], "'candidates'", '7'],
  [['resources=VCPU:1', ['resources=VCPU:1']], "'candidates'", 'VCPU:1'],
  ['', 'candidates', 'resources'],
  [long, "'candidates'", '105040 bytes', '16384'],
  ['resources=VCPU:1&required=\0', "'candidates'", 'NUL'],
  ['resources=VCPU:1%00', 'candidates', 'NUL'],
  ['resources=VCPU:1&limit=3', 'limit', '3'],
  ['resources=VCPU:some', 'resources', 'some'],
  ['resources=VCPU:0', 'resources', '0'],
  ['resources=CUSTOM_NONE:1', 'resources', 'CUSTOM_NONE'],
  ['resources=VCPU:1&required=CUSTOM_NONE', 'trait', 'CUSTOM_NONE'],
  ['resources=VCPU:1&required=', 'required', 'empty'],
  ['resources=VCPU:1&required=HW_CPU_X86_AVX,!HW_CPU_X86_AVX', 'required', 'HW_CPU_X86_AVX'],
  ['resources=VCPU:1&member_of=some', 'member_of', 'some'],
  ['resources=VCPU:1&in_tree=some', 'in_tree', 'some'],
  ['resources=VCPU:1&unknown=5', 'unknown'],
  ['?resources=VCPU:1', "'?resources'"],
  ['resources1=VCPU:1&resources2=VCPU:1', 'group_policy'],
  ['resources=VCPU:1&order=most:VCPU', 'order', 'most:VCPU'],
  ['resources=VCPU:1&with=some', 'with', 'some'],
  ['resources=VCPU:1&apart_from=some', 'apart_from', 'some'],
  [
    `resources=VCPU:1&with=11111111-1111-4111-8111-111111111111&apart_from=11111111-1111-4111-8111-111111111111`,
    'apart_from',
    '11111111',
  ],
];

test('a body that is wrong is a 400 that names the consumer, the parameter and the value, and changes nothing', async () => {
  await withHosts(anyEngine, 1, async (send, [host = '']) => {
    for (const [candidates, ...parts] of wrong) {
      for (const isGang of [false, true]) {
        const consumer = randomUUID();
        const answer = isGang
          ? await send('POST', '/allocations', {
              [randomUUID()]: placed('resources=VCPU:1'),
              [consumer]: placed(candidates),
            })
          : await send('PUT', `/allocations/${consumer}`, placed(candidates));
        const { detail } = errorOf(answer);
        assert.equal(answer.status, 400, `${JSON.stringify(candidates)}: ${answer.text}`);
        for (const part of [consumer, ...parts]) assert.ok(detail.includes(part), `${part} is not in: ${detail}`);
        assert.ok(detail.length < 40_000);
      }
    }
    const consumer = randomUUID();
    const plain = newClaim({ [host]: { VCPU: 1 } });
    const together: readonly (readonly [body: object, part: string])[] = [
      [{ ...plain, candidates: 'resources=VCPU:1' }, 'allocations'],
      [{ ...placed('resources=VCPU:1'), allocations: {} }, 'allocations'],
      [{ ...placed('resources=VCPU:1'), mappings: { '': [host] } }, 'mappings'],
      [{ ...plain, allocations: undefined }, 'candidates'],
      [{ ...placed('resources=VCPU:1'), dry_run: 'yes' }, 'dry_run'],
      [{ ...placed('resources=VCPU:1'), dry_run: null }, 'dry_run'],
      [{ ...placed('resources=VCPU:1'), dry_runs: true }, 'dry_runs'],
    ];
    for (const [body, part] of together) {
      const answer = await send('PUT', `/allocations/${consumer}`, body);
      assert.equal(answer.status, 400, answer.text);
      assert.ok(errorOf(answer).detail.includes(part), errorOf(answer).detail);
    }
    const gang = { [consumer]: placed('resources=VCPU:1') };
    for (const body of [{ ...gang, dry_run: 1 }, { ...gang, dry_runs: true }, { dry_run: true }, []]) {
      assert.equal((await send('POST', '/allocations', body)).status, 400);
    }
    const many = Object.fromEntries(Array.from({ length: 501 }, () => [randomUUID(), placed('resources=VCPU:1')]));
    const tooMany = await send('POST', '/allocations', many);
    assert.equal(tooMany.status, 400);
    assert.match(errorOf(tooMany).detail, /'candidates' for 501 consumers, and may have it for 500/);
    const { json } = await send('GET', '/consumers');
    assert.deepEqual(at(json, 'consumers'), []);
  });
});

test('below 2.4 candidates and dry_run are unknown keys', async () => {
  await withHosts(anyEngine, 1, async (send, [host = '']) => {
    const consumer = randomUUID();
    const plain = newClaim({ [host]: { VCPU: 1 } });
    const inventories = { [host]: { resource_provider_generation: 1, inventories: { VCPU: { total: 8 } } } };
    const requests: readonly (readonly [method: string, path: string, body: object, key: string])[] = [
      ['PUT', `/allocations/${consumer}`, placed('resources=VCPU:1'), 'candidates'],
      ['PUT', `/allocations/${consumer}`, { ...plain, candidates: 'resources=VCPU:1' }, 'candidates'],
      ['PUT', `/allocations/${consumer}`, { ...plain, dry_run: true }, 'dry_run'],
      ['POST', '/allocations', { [consumer]: placed('resources=VCPU:1') }, 'candidates'],
      ['POST', '/allocations', { [consumer]: plain, dry_run: true }, 'dry_run'],
      ['POST', '/reshaper', { inventories, allocations: {}, dry_run: true }, 'dry_run'],
    ];
    for (const [method, path, body, key] of requests) {
      for (const version of ['placement 1.39', 'placement 2.3']) {
        const answer = await send(method, path, body, version);
        assert.equal(answer.status, 400, `${method} ${path}: ${answer.text}`);
        assert.ok(errorOf(answer).detail.includes(key), errorOf(answer).detail);
      }
    }
    assert.deepEqual((await send('GET', `/allocations/${consumer}`)).json, { allocations: {} });
    const shaped = await send('POST', '/reshaper', {
      inventories,
      allocations: { [consumer]: placed('resources=VCPU:1') },
    });
    assert.equal(shaped.status, 400);
    assert.ok(errorOf(shaped).detail.includes('candidates'));
  });
});

test('a field of POST /allocations that stands at the wrong place is a 400 that says where it belongs', async () => {
  await withHosts(anyEngine, 1, async (send) => {
    const detailOf = async (body: object, version = 'placement 2.9') => {
      const answer = await send('POST', '/allocations', body, version);
      assert.equal(answer.status, 400, answer.text);
      return errorOf(answer).detail;
    };
    const [consumer, claim] = [randomUUID(), placed('resources=VCPU:1')];
    for (const [field, value] of Object.entries({
      expires_in: 60,
      name: 'train-7',
      project_id: 'web',
      allocations: {},
    })) {
      const hint = `'${field}' is a field of each consumer: {"UUID": {"${field}": ..., ...}}.`;
      assert.ok((await detailOf({ [consumer]: claim, [field]: value })).endsWith(hint), field);
    }
    for (const [field, value] of Object.entries({ dry_run: true, line: 'gpu' })) {
      const hint = `'${field}' stands beside the consumers: {"UUID": {...}, "${field}": ...}.`;
      assert.ok((await detailOf({ [consumer]: { ...claim, [field]: value } })).endsWith(hint), field);
    }
    // A field of a newer version is no field of consumers yet.
    const older = await detailOf({ [consumer]: claim, name: 'train-7' }, 'placement 2.8');
    assert.match(older, /'name' needs microversion 2\.9; this request is for 2\.8\.$/);
    for (const other of [{ some: 1 }, { [randomUUID()]: 5 }])
      assert.doesNotMatch(await detailOf({ [consumer]: claim, ...other }), /each consumer|beside/);
  });
});

/** Long bodies are checked in pieces, with the results of a check as a whole. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import * as v from 'valibot';
import { consumersBodies, putBodies } from '../../src/api/allocations/bodies.ts';
import { aggregateUuid } from '../../src/api/resource_providers/aggregates.ts';
import { providerInventoriesBodies } from '../../src/api/resource_providers/inventory_bodies.ts';
import { inPieces, openTurns } from '../../src/request/turns.ts';
import { integer, keyed, list, object, text } from '../../src/rest/json_schema.ts';
import { checkInPieces, parseLongJson } from '../../src/rest/long_bodies.ts';
import { complaintOf } from '../../src/rest/schema_complaint.ts';
import { numberedUuid } from '../support/uuids.ts';

type Outcome = { readonly output: unknown } | { readonly complaint: string };

const outcomeOf = (output: unknown, issues: readonly v.BaseIssue<unknown>[] = []): Outcome => {
  const [first, ...others] = issues;
  return first === undefined ? { output } : { complaint: complaintOf([first, ...others]) };
};

/** Checks a value in pieces, of which every object and array is one that has some values. */
async function inPiecesOf(schema: v.GenericSchema, value: unknown, longFrom: number): Promise<Outcome> {
  const { value: parsed, long } = await inPieces(parseLongJson(JSON.stringify(value), { longFrom }), openTurns());
  const { output, issues } = await inPieces(checkInPieces(schema, parsed, long), openTurns());
  return outcomeOf(output, issues);
}

function asAWhole(schema: v.GenericSchema, value: unknown): Outcome {
  const { output, issues } = v.safeParse(schema, JSON.parse(JSON.stringify(value)));
  return outcomeOf(output, issues);
}

const uuid = fc.constantFrom(...Array.from({ length: 40 }, (_, n) => numberedUuid(n)));
/** Mostly a good value, sometimes one that is wrong. */
const mostly = <T>(good: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 60, arbitrary: good as fc.Arbitrary<unknown> },
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  );
const named = (key: fc.Arbitrary<string>, value: fc.Arbitrary<unknown>, maxKeys = 12) =>
  mostly(
    fc.dictionary(fc.oneof({ weight: 80, arbitrary: key }, { weight: 1, arbitrary: fc.string() }), value, { maxKeys }),
  );
const className = fc.constantFrom('VCPU', 'MEMORY_MB', 'DISK_GB', 'CUSTOM_A', 'CUSTOM_B');
const resources = named(className, mostly(fc.integer({ min: 1, max: 9 })));
const allocations = named(uuid, mostly(fc.record({ resources })));
const consumer = fc.record({
  allocations,
  project_id: mostly(fc.constant('p')),
  user_id: mostly(fc.constant('u')),
  consumer_generation: mostly(fc.constantFrom(null, 1)),
  consumer_type: mostly(fc.constant('INSTANCE')),
  mappings: named(fc.constantFrom('', '_A', '_B'), mostly(fc.array(uuid, { minLength: 1 }))),
});
const inventories = named(className, mostly(fc.record({ total: mostly(fc.integer({ min: 1 })) })));
const [echoing, plain] = providerInventoriesBodies;
const [, , mappedPut] = putBodies;
const aggregates = object({
  aggregates: list(aggregateUuid, { unique: true }),
  resource_provider_generation: integer(),
});

const kinds: readonly (readonly [v.GenericSchema, fc.Arbitrary<unknown>])[] = [
  ...consumersBodies(1).map(({ schema }) => [schema, named(uuid, mostly(consumer), 20)] as const),
  ...putBodies.map(({ schema }) => [schema, mostly(consumer)] as const),
  ...[echoing, plain].map(
    ({ schema }) =>
      [schema, mostly(fc.record({ resource_provider_generation: mostly(fc.nat()), inventories }))] as const,
  ),
  [
    aggregates,
    mostly(fc.record({ aggregates: mostly(fc.array(mostly(uuid))), resource_provider_generation: fc.nat() })),
  ],
  [
    list(object({ a: keyed(/^[a-z]+$/, text({ maxLength: 3 })) })),
    mostly(fc.array(mostly(fc.record({ a: resources })))),
  ],
];

test('checking a value in pieces has the same output and error as checking it as a whole', () =>
  fc.assert(
    fc.asyncProperty(
      fc.nat(kinds.length - 1).chain((kind) => fc.tuple(fc.constant(kind), kinds[kind]?.[1] ?? fc.constant(null))),
      fc.integer({ min: 1, max: 8 }),
      async ([kind, value], longFrom) => {
        const schema = kinds[kind]?.[0] ?? v.unknown();
        // After an object with the key "\\", JSON.parse of V8 may take a key "\"" for it, so it is no judge of such keys.
        fc.pre(!JSON.stringify(value).includes('\\\\'));
        assert.deepEqual(await inPiecesOf(schema, value, longFrom), asAWhole(schema, value));
      },
    ),
    { numRuns: 5000 },
  ));

test('in a list, items that do not match their pattern are compared with the other items, and items of another type are not', async () => {
  const schema = list(text({ pattern: /^[a-z]$/ }), { unique: true });
  for (const [items, complaint] of [
    [['a', '1', 'a', 'b'], /has non-unique elements/],
    [['a', '1', '1', 'b'], /has non-unique elements/],
    [['a', 'a', 'b', 1], /1 is not of type 'string'/],
    [['a', 'a', 'b', ['c', 'd']], /\['c', 'd'\] is not of type 'string'/],
  ] as const) {
    const found = await inPiecesOf(schema, items, 1);
    assert.deepEqual(found, asAWhole(schema, items));
    assert.match('complaint' in found ? found.complaint : '', complaint);
  }
});

test('a member with a key that every JavaScript object has is the only fault that is reported', async () => {
  const schema = keyed(/^[A-Z]+$/, integer());
  const members = [...Array.from({ length: 30 }, (_, n) => [`key ${n}`, 'x'] as const), ['__proto__', 1] as const];
  for (const value of [Object.fromEntries(members), Object.fromEntries([...members, ['constructor', {}]])]) {
    const found = await inPiecesOf(schema, value, 1);
    assert.deepEqual(found, asAWhole(schema, value));
    assert.match('complaint' in found ? found.complaint : '', /^'__proto__'.* do(es)? not match any of the regexes/);
  }
});

test('of very many faults only one is reported', async () => {
  assert.ok(mappedPut);
  const wrong = Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`key ${n}`, n]));
  const found = await inPiecesOf(keyed(/^[A-Z]+$/, integer()), wrong, 100);
  assert.ok('complaint' in found && found.complaint.length < 5_000);
  assert.match(found.complaint, /^'key 0', 'key 1', .*\.\.\. do not match any of the regexes: '\^\[A-Z\]\+\$'/);
});

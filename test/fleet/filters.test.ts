/** One filter, in each of the forms in which providers are searched for by it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { wantedBy } from '../../src/api/resource_providers/filters.ts';
import type { Provider } from '../../src/fleet/model/provider.ts';
import { fewestFor, type ProviderFilter, satisfiesAlone } from '../../src/search/filters.ts';
import { often } from '../candidates/random_topology.ts';
import { aggregates, fleetOf, type Node, nodeAt, stockOf, traitNames } from '../candidates/topology.ts';

/** So many that a set of few of them is listed by itself. */
const size = 60;

/** Mostly none of some values. */
const few = <Value>(values: readonly Value[]) => often(fc.constant<Value[]>([]), fc.subarray([...values]));

const anyNode = fc.record({
  isBelow: fc.boolean(),
  vcpu: fc.nat(4),
  traits: few(traitNames),
  aggregates: few(aggregates),
});

const anyNodes = fc.array(anyNode, { minLength: size, maxLength: size }).map((nodes) =>
  nodes.map(({ isBelow, vcpu, ...more }, index): Node => {
    const parent = isBelow && index > 0 ? index - 1 : undefined;
    return nodeAt(index, { parent, stock: vcpu === 0 ? {} : { VCPU: stockOf(vcpu) }, ...more });
  }),
);

const ids = traitNames.map((_, index) => index + 1);
const lists = <Value>(values: readonly Value[]) =>
  often(fc.constant<Value[][]>([]), fc.array(fc.subarray([...values], { minLength: 1 }), { maxLength: 2 }));

const anyFilter = fc.record({
  vcpu: fc.nat(5),
  traits: fc.record({ required: lists(ids), forbidden: few(ids) }),
  memberOf: lists(aggregates),
  forbiddenAggregates: few(aggregates),
  /** The index of a provider of the requested tree. */
  inTree: fc.option(fc.nat(size - 1), { nil: undefined, freq: 2 }),
  named: fc.option(fc.uniqueArray(fc.nat(size - 1), { maxLength: 8 }), { nil: undefined, freq: 2 }),
});

const idsOf = (providers: readonly Provider[]) => providers.map(({ id }) => id).sort((one, other) => one - other);

test('a filter finds the same providers by a list of few, by its conditions, and one by one', () => {
  let listed = 0;
  let found = 0;
  fc.assert(
    fc.property(anyNodes, anyFilter, (nodes, { vcpu, inTree, named, ...rest }) => {
      const fleet = fleetOf(nodes);
      const at = (index: number): Provider => {
        const provider = fleet.byUuid.get(nodes[index]?.uuid ?? '');
        assert.ok(provider);
        return provider;
      };
      const treeRoot = inTree === undefined ? undefined : at(inTree).root;
      const filter: ProviderFilter = { ...rest, resources: vcpu === 0 ? [] : [{ classId: 1, amount: vcpu }], treeRoot };
      const has = (own: readonly unknown[], anyOf: readonly unknown[]) => anyOf.some((one) => own.includes(one));
      const expected = nodes.flatMap((node, index) => {
        const traits = node.traits.map((name) => traitNames.indexOf(name) + 1);
        const isIt =
          vcpu <= (node.stock.VCPU?.total ?? 0) &&
          (treeRoot === undefined || at(index).root === treeRoot) &&
          rest.traits.required.every((anyOf) => has(traits, anyOf)) &&
          !has(traits, rest.traits.forbidden) &&
          rest.memberOf.every((anyOf) => has(node.aggregates, anyOf)) &&
          !has(node.aggregates, rest.forbiddenAggregates);
        return isIt ? [at(index)] : [];
      });
      const all = nodes.map((_, index) => at(index));
      assert.deepEqual(idsOf(all.filter((provider) => satisfiesAlone(provider, filter))), idsOf(expected));
      const { list } = fewestFor(fleet, filter, { size: Number.POSITIVE_INFINITY, list: undefined });
      const containing = new Set(list?.() ?? all);
      for (const provider of expected) assert.ok(containing.has(provider));
      const only = named && new Set(named.map(at));
      const wanted = wantedBy(fleet, filter, only);
      assert.deepEqual(
        idsOf((wanted.few ?? all).filter(wanted.isWanted)),
        idsOf(expected.filter((provider) => only?.has(provider) ?? true)),
      );
      listed += Number(wanted.few !== undefined);
      found += expected.length;
    }),
    { numRuns: 300 },
  );
  assert.ok(listed > 20 && found > 1000, `${listed} lists of few, ${found} providers found`);
});

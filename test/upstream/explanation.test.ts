/** Each number of an explanation is what the real OpenStack Placement says to plain queries with conditions taken out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { CandidateRequest } from '../../src/search/request.ts';
import { anyCase } from '../candidates/explanation/any_case.ts';
import { explained, figuresOf } from '../candidates/explanation/explained.ts';
import { naiveFigures } from '../candidates/explanation/naive_explanation.ts';
import { partsOf, queryOf } from '../candidates/explanation/parts.ts';
import { fleetOf, sharingTrait, type Topology } from '../candidates/topology.ts';
import { customTraits, loadTopology, queriesToUpstream } from './plain_queries.ts';
import { startUpstreamOnSqlite } from './sqlite.ts';

const numRuns = Number(process.env.EXPLANATION_CASES ?? 100);
const mostProviders = 7;

/** What upstream answers wrongly or by chance: see docs/differences.md. */
function isRightUpstream([topology, request]: readonly [Topology, CandidateRequest]): boolean {
  const sharing = topology.filter(({ traits }) => traits.includes(sharingTrait));
  const plain = request.groups.find(({ suffix }) => suffix === '');
  const granular = request.groups.filter(({ suffix }) => suffix !== '');
  const isBesideGranular = plain !== undefined && granular.length > 0;
  // A provider that shares and is no root, taken from by another tree, is a 500.
  if (sharing.some(({ parent }) => parent !== undefined)) return false;
  // What the group without suffix takes of providers that share is lost for all trees but one.
  if (isBesideGranular && sharing.length > 0) return false;
  // Of a class of both kinds of groups the amounts are added up by chance where the groups are isolated.
  const classes = new Set(granular.flatMap(({ resources }) => [...resources.keys()]));
  return !(isBesideGranular && request.isolate && !classes.isDisjointFrom(plain.resources));
}

test('each number equals the answer of OpenStack Placement to plain queries', async (t) => {
  const upstream = await startUpstreamOnSqlite(customTraits(mostProviders));
  const total = { upstream: 0, rules: 0 };
  const seen = { cases: 0, conditions: 0, fit: 0, sharing: 0, groups: 0 };
  try {
    await fc.assert(
      fc.asyncProperty(anyCase.filter(isRightUpstream), async ([topology, request]) => {
        const parts = partsOf(request);
        const text = queryOf(parts);
        loadTopology(upstream, topology);
        const { queries, roots, counts } = queriesToUpstream(upstream, topology);
        const explanation = explained(fleetOf(topology), text);
        assert.equal(explanation.trees, await roots(), text);
        assert.equal(explanation.fitting, await queries.fitting(parts), text);
        assert.deepEqual(figuresOf(explanation), await naiveFigures(queries, parts), text);
        total.upstream += counts.upstream;
        total.rules += counts.rules;
        seen.cases += 1;
        seen.conditions += parts.length;
        seen.fit += Number((explanation.fitting ?? 0) > 0);
        seen.sharing += Number(topology.some(({ traits }) => traits.includes(sharingTrait)));
        seen.groups += Number(request.groups.length > 1);
      }),
      { numRuns },
    );
  } finally {
    await upstream.stop();
  }
  t.diagnostic(JSON.stringify({ ...seen, queries: total }));
  assert.ok(total.rules < total.upstream / 20, 'few questions are not for OpenStack Placement');
  for (const [what, times] of Object.entries(seen)) assert.ok(times > numRuns / 10, `${what}: ${times}`);
});

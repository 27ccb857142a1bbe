import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Changes } from '../../db/fleet/read_changes.ts';
import { parseCandidateRequest } from '../../src/candidates/query.ts';
import { candidatesJson } from '../../src/candidates/response.ts';
import { search } from '../../src/candidates/search.ts';
import type { LivingFleet } from '../../src/fleet/fleet.ts';
import { parseQuery } from '../../src/rest/query_string.ts';
import { createFleet } from '../fleet/made_up_fleet.ts';
import { type Node, nodeAt, providerUuid, rowsOf, stockOf } from './topology.ts';

/** So many hosts that the answer is more than one chunk. */
const hostCount = 60_000;

const host = (_: unknown, place: number): Node => nodeAt(place, { stock: { VCPU: stockOf(8) } });

/** The change of the fleet while an answer is sent. */
type Change = Pick<Changes, 'whole' | 'providers' | 'inventories'>;

/** The answer to a query for all hosts. The fleet changes after its first chunk was sent. */
function answerOf({ fleet, apply }: LivingFleet, change: Change) {
  const request = parseCandidateRequest(parseQuery('resources=VCPU:1'), 39);
  const candidates = search(fleet, request, { strategy: 'depth-first', randomize: false, limited: false });
  let text = '';
  let chunkCount = 0;
  for (const chunk of candidatesJson(fleet, request, candidates, 39)) {
    text += chunk;
    if (chunkCount++ > 0) continue;
    const rest = { moved: null, touched: null, traits: null, aggregates: null, traitNames: null, classNames: null };
    apply({ ...rest, ...change, snapshot: '', lastXid: null, told: null, reload: false, isMuch: false });
  }
  assert.ok(chunkCount > 1, 'or this test proves nothing');
  const { allocation_requests: requests, provider_summaries: summaries } = JSON.parse(text);
  return { requests, summaries };
}

test('if a host is deleted or gets a parent while an answer is sent, it has all other hosts and is JSON', () => {
  const rows = rowsOf(Array.from({ length: hostCount }, host));
  const [gone, child, parent] = [1, hostCount - 1, hostCount];
  const { requests, summaries } = answerOf(createFleet(rows), {
    whole: [gone, child],
    providers: rows.providers.filter(({ id }) => id === child).map((row) => ({ ...row, parent })),
    inventories: rows.inventories.filter(({ provider }) => provider === child),
  });
  assert.equal(requests.length, hostCount, 'the first was told of before it went');
  const uuid = providerUuid(child - 1);
  assert.equal(summaries[uuid].parent_provider_uuid, providerUuid(parent - 1));
  assert.equal(Object.keys(summaries).length, hostCount);
});

test('a provider that moves to another tree after its candidate was sent still has its summary', () => {
  const [child, formerParent, parent] = [2, 1, 3];
  const hosts = Array.from({ length: hostCount }, host);
  const rows = rowsOf(
    hosts.map((node, place) => ({
      ...node,
      ...(place === child - 1 ? { parent: formerParent - 1 } : {}),
      ...(place === parent - 1 ? { stock: { ...node.stock, VCPU: undefined } } : {}),
    })),
  );
  const { summaries } = answerOf(createFleet(rows), {
    whole: [child],
    providers: rows.providers.filter(({ id }) => id === child).map((row) => ({ ...row, parent })),
    inventories: rows.inventories.filter(({ provider }) => provider === child),
  });
  assert.ok(providerUuid(child - 1) in summaries);
});

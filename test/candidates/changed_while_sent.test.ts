import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCandidateRequest } from '../../src/candidates/query.ts';
import { candidatesJson } from '../../src/candidates/response.ts';
import { search } from '../../src/candidates/search.ts';
import { parseQuery } from '../../src/query/query_string.ts';
import { createFleet } from '../fleet/made_up_fleet.ts';
import { type Node, providerUuid, rowsOf } from './topology.ts';

/** So many that the answer does not go out as one chunk. */
const hostCount = 60_000;

const stock = { total: 8, reserved: 0, min_unit: 1, max_unit: 8, step_size: 1, allocation_ratio: 1, used: 0 };
const host = (_: unknown, place: number): Node => ({
  uuid: providerUuid(place),
  parent: undefined,
  stock: { VCPU: stock, MEMORY_MB: undefined, DISK_GB: undefined, SRIOV_NET_VF: undefined },
  traits: [],
  aggregates: [],
});

test('while an answer is sent one host may go and another get a parent: the others are in it, and it is JSON', () => {
  const rows = rowsOf(Array.from({ length: hostCount }, host));
  const { fleet, apply } = createFleet(rows);
  const request = parseCandidateRequest(parseQuery('resources=VCPU:1'), 39);
  const candidates = search(fleet, request, { strategy: 'depth-first', randomize: false, limited: false });
  let text = '';
  let chunkCount = 0;
  for (const chunk of candidatesJson(fleet, request, candidates, 39)) {
    text += chunk;
    if (chunkCount++ > 0) continue;
    const [gone, child, parent] = [1, hostCount - 1, hostCount];
    apply({
      snapshot: '',
      reload: false,
      moved: null,
      touched: null,
      whole: [gone, child],
      providers: rows.providers.filter(({ id }) => id === child).map((row) => ({ ...row, parent })),
      inventories: rows.inventories.filter(({ provider }) => provider === child),
      traits: null,
      aggregates: null,
      traitNames: null,
      classNames: null,
    });
  }
  assert.ok(chunkCount > 1, 'or this test proves nothing');
  const { allocation_requests: requests, provider_summaries: summaries } = JSON.parse(text);
  assert.equal(requests.length, hostCount, 'the first was told of before it went');
  const child = providerUuid(hostCount - 2);
  assert.equal(summaries[child].parent_provider_uuid, providerUuid(hostCount - 1));
  assert.equal(Object.keys(summaries).length, hostCount);
});

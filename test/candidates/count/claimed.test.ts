/** Consumers are claimed through the API until nothing fits: as many as GET /allocation_candidates/count said before. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyEngine } from '../../support/engines.ts';
import { accepted, at, newClaim, requestsTo, type Send } from '../../support/requests.ts';
import { withTestService } from '../../support/services.ts';
import { crowdedRequest, crowdedTree } from '../crowded.ts';
import { isWritable } from '../explanation/any_case.ts';
import { partsOf, queryOf } from '../explanation/parts.ts';
import { anyRequest } from '../random_request.ts';
import { anyTopology } from '../random_topology.ts';
import { classNames, sharingTrait, type Topology, traitNames } from '../topology.ts';
import { mostPlaced } from './naive_count.ts';
import { scarce } from './scarce.ts';

const numRuns = Number(process.env.CLAIMED_CASES ?? 40);

/** Makes a topology by requests. What is used is claimed while there is room for it. */
async function make(send: Send, topology: Topology): Promise<Topology> {
  const named = topology.map((node) => ({ ...node, uuid: randomUUID() }));
  for (const [index, { uuid, parent, traits, aggregates, stock }] of named.entries()) {
    const parent_provider_uuid = parent === undefined ? null : named[parent]?.uuid;
    accepted(await send('POST', '/resource_providers', { uuid, name: `${uuid} ${index}`, parent_provider_uuid }));
    const offered = classNames.flatMap((name) => {
      const { used = 0, ...fields } = stock[name] ?? {};
      if (stock[name] === undefined) return [];
      // The API refuses more.
      const reserved = Math.min(stock[name].reserved, stock[name].total);
      return [{ name, used, fields: { ...fields, reserved } }];
    });
    const write = async (inventories: object) => {
      const { resource_provider_generation } = Object(
        (await send('GET', `/resource_providers/${uuid}/inventories`)).json,
      );
      const body = { resource_provider_generation, inventories };
      accepted(await send('PUT', `/resource_providers/${uuid}/inventories`, body));
    };
    const held = offered.filter(({ used }) => used > 0);
    if (held.length > 0) {
      await write(Object.fromEntries(held.map(({ name }) => [name, { total: 1000 }])));
      const resources = Object.fromEntries(held.map(({ name, used }) => [name, used]));
      accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [uuid]: resources })));
    }
    await write(Object.fromEntries(offered.map(({ name, fields }) => [name, fields])));
    const generation = async () => at((await send('GET', `/resource_providers/${uuid}`)).json, 'generation');
    const ofTraits = { resource_provider_generation: await generation(), traits };
    accepted(await send('PUT', `/resource_providers/${uuid}/traits`, ofTraits));
    const ofAggregates = { resource_provider_generation: await generation(), aggregates };
    accepted(await send('PUT', `/resource_providers/${uuid}/aggregates`, ofAggregates));
  }
  return named;
}

async function clear(send: Send, topology: Topology): Promise<void> {
  for (const { uuid } of topology.toReversed()) {
    const { json } = await send('GET', `/resource_providers/${uuid}/allocations`);
    for (const consumer of Object.keys(Object(at(json, 'allocations')))) {
      accepted(await send('DELETE', `/allocations/${consumer}`));
    }
    accepted(await send('DELETE', `/resource_providers/${uuid}`));
  }
}

type Amounts = Readonly<Record<string, { readonly resources: Readonly<Record<string, number>> }>>;

const cases = fc
  .oneof(
    {
      weight: 3,
      arbitrary: fc.tuple(
        anyTopology.map(scarce),
        anyRequest.map((request) => ({
          ...request,
          nested: true,
          groups: request.groups.slice(0, 1),
          sameSubtrees: [],
        })),
      ),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(
        anyTopology.map(scarce),
        anyRequest.map((request) => ({ ...request, nested: true })),
      ),
    },
    { weight: 1, arbitrary: fc.tuple(crowdedTree, crowdedRequest) },
  )
  .filter(([, request]) => isWritable(request) && request.groups.every(({ resources }) => resources.size > 0))
  .filter(([, { groups }]) => groups.every(({ inTree }) => inTree === undefined));

test('exactly as many consumers can be claimed as were counted', async (t) => {
  const seen = new Map<string, number>();
  const note = (what: string, isSo: boolean) => seen.set(what, (seen.get(what) ?? 0) + Number(isSo));
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, 'placement 2.3');
    for (const name of traitNames) if (name.startsWith('CUSTOM_')) accepted(await send('PUT', `/traits/${name}`));
    const left: Topology[] = [];
    await fc.assert(
      fc.asyncProperty(cases, async ([topology, request]) => {
        // A case that failed leaves its providers behind.
        await clear(send, left.splice(0).flat());
        const made = await make(send, topology);
        left.push(made);
        const query = queryOf(partsOf(request));
        const candidates = async (): Promise<readonly { readonly allocations: Amounts }[]> => {
          const { json } = accepted(await send('GET', `/allocation_candidates?${query}`));
          return at(json, 'allocation_requests') as { allocations: Amounts }[]; // as the API says
        };
        const claim = async ({ allocations }: { readonly allocations: Amounts }): Promise<void> => {
          const wanted = Object.fromEntries(
            Object.entries(allocations).map(([uuid, { resources }]) => [uuid, resources]),
          );
          accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim(wanted)));
        };
        const { json } = accepted(await send('GET', `/allocation_candidates/count?${query}`));
        const [count, exact] = [Number(at(json, 'count')), at(json, 'exact')];
        const plan = mostPlaced(made, request);
        if (plan !== undefined) {
          // Some way to place them places the most.
          for (const amounts of plan.slice(0, exact ? undefined : count)) await claim({ allocations: amounts });
          assert.ok(
            exact ? plan.length === count : plan.length >= count,
            `${query}: ${count}, and ${plan.length} placed`,
          );
          if (exact) assert.deepEqual(await candidates(), [], query);
        }
        note('as many as counted', plan !== undefined && exact === true && count > 0);
        note('not exact', plan !== undefined && exact === false);
        await clear(send, left.splice(0).flat());

        const again = await make(send, topology);
        left.push(again);
        let claimed = 0;
        for (let found = await candidates(); found.length > 0; found = await candidates()) {
          const first = found[(7 * claimed) % found.length];
          if (first !== undefined) await claim(first);
          claimed += 1;
        }
        if (exact) assert.ok(claimed <= count, `${query}: ${claimed} were claimed of ${count}`);
        // One group whose classes are found on one provider each leaves no choice that could waste something.
        const [group, another] = request.groups;
        const isFree =
          another === undefined &&
          (group?.suffix !== '' ||
            (group.traits.required.length === 0 && !topology.some(({ traits }) => traits.includes(sharingTrait))));
        if (isFree) assert.deepEqual([claimed, exact], [count, true], query);
        note('whatever is chosen', isFree && count > 0);
        note('several', count > 1);
      }),
      { numRuns },
    );
  });
  t.diagnostic(JSON.stringify(Object.fromEntries(seen)));
  for (const what of ['as many as counted', 'whatever is chosen', 'several']) {
    assert.ok((seen.get(what) ?? 0) > numRuns / 10, `${what}: ${seen.get(what)} of ${numRuns} cases`);
  }
});

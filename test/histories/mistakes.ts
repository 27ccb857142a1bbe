import { limitMistakes } from './limit_mistakes.ts';
import type { Mistake } from './mistake.ts';
import { reliedMistakes } from './relied_mistakes.ts';
import { treeMistakes } from './tree_mistakes.ts';
import { waitingMistakes } from './waiting_mistakes.ts';

/** Switches the history of usages on, without which no consumers are reported. */
export const historyOn = 'insert into usage_history (since, is_complete) values (now(), true)';

/** Mistakes that the checker of histories must find. */
export const mistakes: readonly Mistake[] = [
  {
    name: 'one read of five is answered from the memory of its process, without a refresh',
    file: 'src/fleet/keep/keeper.ts',
    from: 'fresh: refreshes.next,',
    to: 'fresh: async () => (Math.random() < 0.2 ? living.fleet : refreshes.next()),',
    processes: 2,
  },
  {
    name: 'a request shares a refresh that began before it came',
    file: 'src/fleet/keep/keeper.ts',
    from: '    gathering = undefined;\n    return onBehalfOf',
    to: '    setTimeout(() => (gathering = undefined), 50);\n    return onBehalfOf',
  },
  {
    name: 'a claim is written over a newer generation of its consumer',
    file: 'src/claims/judge.ts',
    from: 'knownGeneration === undefined || knownGeneration === generation',
    to: 'true',
  },
  {
    name: 'inventories, traits and aggregates are written over a newer generation of their provider',
    file: 'src/api/resource_providers/provider_writes.ts',
    from: 'resolve(done.has(item) ? shown : undefined)',
    to: 'resolve(shown ?? fleet.fresh())',
  },
  {
    name: 'one unit more than the capacity is given',
    file: 'src/claims/judge_capacity.ts',
    from: 'mayBeUsed(fields, others + change.wanted, before)',
    to: 'mayBeUsed(fields, others + change.wanted - 1, before)',
  },
  {
    name: 'a claim by another process is overlooked when the room is judged again',
    file: 'db/statements/claims/write_claims.ts',
    from: 'or present <> generation ',
    to: 'or false and present <> generation ',
    processes: 2,
  },
  {
    name: 'memory survives the DELETE of a claim',
    file: 'db/statements/claims/delete_allocations.ts',
    from: ' is not null\n        and (consumer_id',
    to: ' is not null and a.resource_class_id = 0\n        and (consumer_id',
  },
  {
    name: 'the entity tag of an inventory leaves max_unit out',
    file: 'src/placement/entity_tag.ts',
    from: 'fields.maxUnit},',
    to: '1},',
  },
  {
    name: 'the entity tag of a consumer leaves its user out',
    file: 'src/placement/entity_tag.ts',
    from: 'JSON.stringify(userId)',
    to: '0',
  },
  {
    name: 'If-Match is not compared',
    file: 'src/placement/entity_tag.ts',
    from: "(ifMatch === '*' || ifMatch.includes(opaquePart(tag)))",
    to: 'true',
  },
  {
    name: 'changes of traits are not reported',
    file: 'src/fleet/follow/change_set.ts',
    from: 'if (reported === 0 || ',
    to: 'if (reported === 0 || reported === partBits.traits || ',
  },
  {
    name: 'changes of usages are not reported',
    file: 'src/fleet/follow/change_set.ts',
    from: 'change(provider, bits);',
    to: 'change(provider, bits & ~partBits.usages);',
  },
  {
    name: 'consumers that went are not reported',
    statements: [historyOn],
    file: 'src/fleet/follow/change_set.ts',
    from: 'else consumers.set(uuid, bits);',
    to: 'else if (!(bits & goneBit)) consumers.set(uuid, bits);',
  },
  {
    name: 'another owner of a consumer is not reported',
    statements: [historyOn, 'drop trigger usage_owner on consumers'],
  },
  {
    name: 'of several consumers that changed only the first is reported',
    statements: [historyOn],
    file: 'src/fleet/follow/change_set.ts',
    from: 'else consumers.set(uuid, bits);',
    to: 'else if (consumers.size === 0) consumers.set(uuid, bits);',
  },
  {
    name: 'a claim does not raise the generation of its providers',
    file: 'src/claims/judge.ts',
    from: 'bump(fleet.byId.get(id), 1);',
    to: 'bump(fleet.byId.get(id), 0);',
  },
  {
    name: 'of a claim for several consumers only the first is written',
    file: 'src/claims/judge.ts',
    from: 'const consumers = claim.consumers.map(',
    to: 'const consumers = claim.consumers.slice(0, 1).map(',
  },
  {
    name: 'what this process wrote is counted again after it was read',
    file: 'src/fleet/keep/keeper.ts',
    from: 'unreadWrites = unreadWrites.filter(({ xid }) => !isRead(snapshot, xid));',
    to: '',
  },
  {
    name: 'what is reserved is given to consumers',
    file: 'src/placement/inventory.ts',
    from: '(inventory.total - inventory.reserved)',
    to: 'inventory.total',
  },
  {
    name: 'another user of a consumer is answered and not written',
    file: 'db/statements/consumers/consumer_write.ts',
    from: 'user_id = owner.user_id,',
    to: 'user_id = c.user_id,',
  },
  {
    name: 'an answer to a write of inventories has the generation of a later write',
    file: 'src/api/resource_providers/inventories.ts',
    // The answer waits a moment, so that there often is a later write.
    from: 'return listAnswer(request, asWritten(shown, uuid, body.resource_provider_generation, plan.put), shown);',
    to: `await new Promise((done) => setTimeout(done, 20));
      const { generation = 0 } = (await dependencies.fleet.fresh()).byUuid.get(uuid) ?? {};
      return listAnswer(request, asWritten(shown, uuid, generation - 1, plan.put), shown);`,
  },
  {
    name: 'a renewal that loses: it is acknowledged while the removal is under way, and the consumer is removed',
    file: 'db/statements/consumers/remove_ended.ts',
    // The removal finds what ends soon, waits for the end without locks, and does not look again.
    from: 'expires_at <= (select clock_timestamp())\n        and',
    to: "expires_at <= (select clock_timestamp() + interval '0.4 s')\n        and",
    more: [
      {
        from: 'array(select consumer_id from ended)) for update skip locked',
        to: 'array(select consumer_id from ended))',
      },
      {
        from: 'min(expires_at) <= clock_timestamp()',
        to: "min(expires_at) <= clock_timestamp() + interval '0.4 s'",
      },
      { from: 'where t.expires_at <= clock_timestamp()', to: '' },
      { from: 'from noted left join', to: 'from noted cross join lateral (select pg_sleep(0.4)) as p left join' },
    ],
    processes: 2,
  },
  {
    name: 'a claim without a name takes the name of the consumer away',
    file: 'src/claims/judge.ts',
    from: '    name: consumer.name,',
    to: '    name: consumer.name ?? null,',
  },
  {
    name: 'a name that a consumer has already is kept where a claim gives another one',
    file: 'db/statements/claims/claim_write.ts',
    from: 'do update set name = excluded.name where former.name <> excluded.name',
    to: 'do nothing',
  },
  {
    name: 'a term that ends early',
    file: 'db/statements/claims/claim_write.ts',
    from: 'make_interval(secs => seconds)',
    to: 'make_interval(secs => seconds - 0.5)',
  },
  {
    name: 'a claim without a term keeps the term of the consumer',
    file: 'db/statements/consumers/remove_ended.ts',
    from: 't.generation = c.generation as holds',
    to: 'true as holds',
  },
  {
    name: 'a claim by a client of the former consumer is written on the one that was made again',
    scene: 'again',
    file: 'src/claims/judge.ts',
    from: 'knownGeneration === undefined || knownGeneration === generation',
    to: 'knownGeneration === undefined || knownGeneration === generation || knownGeneration === state?.generation',
  },
  {
    name: 'the term or owner of a consumer that was made again is changed by a client of the former one',
    scene: 'again',
    file: 'src/api/consumers/consumers.ts',
    from: 'if (known === generation) return;',
    to: 'if (known === generation || known === seen.generation) return;',
  },
  ...limitMistakes,
  ...reliedMistakes,
  ...treeMistakes,
  ...waitingMistakes,
];

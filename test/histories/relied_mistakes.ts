import type { Mistake } from './mistake.ts';

/**
 * The commit of a claim takes up to 30 ms: so long another request may see a change that the claim did not see, and not yet the claim.
 */
export const slowClaims: readonly string[] = [
  `create function slow_claim() returns trigger language plpgsql as
    $$begin perform pg_sleep(random() * 0.03); return null; end$$`,
  `create constraint trigger slow_claim after insert on allocations deferrable initially deferred
    for each row execute function slow_claim()`,
];

/** A refresh takes up to 20 ms after its snapshot was taken: writes are answered meanwhile that the snapshot lacks. */
const slowRefreshes: readonly string[] = [
  'alter table provider_changes_horizon rename to horizon',
  `create function slow_refresh() returns boolean language plpgsql as
    $$begin perform pg_sleep(random() * 0.02); return true; end$$`,
  'create view provider_changes_horizon as select * from horizon where slow_refresh()',
];

/** Mistakes by which something is taken for unchanged that has changed. */
export const reliedMistakes: readonly Mistake[] = [
  {
    name: 'a read shows a write of its process, and not yet an earlier write of another process',
    file: 'src/fleet/keep/keeper.ts',
    from: 'process.nextTick(afterReads, freed)',
    to: 'afterReads(freed)',
    statements: slowRefreshes,
    processes: 2,
    isRare: true, // test/races/own_writes.test.ts finds it in each run
  },
  {
    name: 'one change of five is logged under a number that processes have seen already',
    statements: ['provider_changes', 'inventory_changes'].map(
      (table) => `alter table ${table} alter column xid set default
        case when random() < 0.2 then (pg_current_xact_id()::text::bigint - 20)::text::xid8 else pg_current_xact_id() end`,
    ),
    processes: 2,
  },
  {
    name: 'after the crash of a backend, processes go on with numbers of transactions that were lost',
    file: 'db/fleet/change_log.ts',
    from: 'const next = BigInt(lastXid) + 1n;',
    to: 'const next = BigInt(snapshotParts(snapshot).xmax);',
    also: [
      {
        file: 'db/engine/server_state.ts',
        from: 'then extract(epoch from pg_stat_get_bgwriter_stat_reset_time()) end',
        to: 'then 0 end',
      },
      { file: 'db/engine/pool.ts', from: 'isInDoubt: () => count > settled,', to: 'isInDoubt: () => false,' },
    ],
    processes: 2,
    needs: 'a crash',
  },
  {
    name: 'what is above the providers of a neighbour may move while a claim by query is written',
    file: 'src/claims/affinity.ts',
    from: 'node = node.parent\n',
    to: 'node = undefined\n',
    statements: slowClaims,
    processes: 2,
    scene: 'trees',
  },
  {
    name: 'a claim by query does not see what was committed while it waited for its providers',
    file: 'db/statements/claims/write_claims.ts',
    from: 'const readsLog = parts.reliedOn || ',
    to: 'const readsLog = ',
    // The commit of a change of traits or of a move takes almost as long as a claim waits for it.
    statements: [
      ...slowClaims,
      'create function slowly() returns trigger language plpgsql as $$begin perform pg_sleep(0.012); return null; end$$',
      `create constraint trigger slowly after update of root_provider_id on resource_providers deferrable initially deferred
        for each row when (old.root_provider_id is distinct from new.root_provider_id) execute function slowly()`,
      `create constraint trigger slowly after insert or delete on resource_provider_traits deferrable initially deferred
        for each row execute function slowly()`,
    ],
    processes: 2,
    scene: 'trees',
    isRare: true, // test/placing/guards.test.ts finds it in each run
  },
  {
    name: 'a provider that is deleted does not fail the claims that relied on it',
    statements: [
      `create function planted() returns trigger language plpgsql as $$begin
        return case when exists (select from resource_providers where id = new.provider_id) then new end;
      end$$`,
      'create trigger planted before insert on inventory_changes for each row execute function planted()',
    ],
    processes: 2,
    scene: 'trees',
  },
  {
    name: 'a tree may change between the guards of a claim that relied on it and its commit',
    file: 'src/claims/judge.ts',
    from: 'trees.add(provider.root.id)',
    to: 'trees.has(provider.root.id)',
    statements: slowClaims,
    processes: 2,
    scene: 'trees',
  },
  {
    name: 'a class may get another name between the guards of a claim and its commit',
    file: 'db/statements/relied_locks.ts',
    from: 'sql`select pg_advisory_xact_lock_shared(',
    to: 'sql`select concat(',
    statements: slowClaims,
    processes: 2,
    scene: 'classes',
  },
  {
    name: 'a consumer may move between the guards of a claim that names it and its commit',
    file: 'db/statements/claims/write_claims.ts',
    from: 'named.flatMap(({ uuid, generation }) => (generation === null ? [] : uuid))',
    to: '[]',
    more: [{ from: 'named.filter(isNowhere)', to: 'named.slice(named.length)' }],
    statements: slowClaims,
    processes: 2,
    scene: 'trees',
  },
  {
    name: 'the reshaper writes inventories to classes that have other names by now',
    file: 'db/statements/claims/claim_guards.ts',
    from: "select claim, 'name' from kept_class where (id, name) not in (select id, name from locked_class)",
    to: "select claim, 'name' from kept_class where id not in (select id from locked_class)",
    processes: 2,
    scene: 'classes',
  },
  {
    name: 'a consumer that is made again has the generations of the former one',
    statements: [
      "create function planted() returns trigger language plpgsql as 'begin return null; end'",
      'create trigger planted before insert on former_consumers for each row execute function planted()',
    ],
    scene: 'again',
  },
];

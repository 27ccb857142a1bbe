import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { accepted, makeProvider, type Send } from '../support/requests.ts';

/** Few names, so that a change often concerns the next claim. Custom names may be deleted for a time. */
export const classes = ['VCPU', 'DISK_GB', 'CUSTOM_A', 'CUSTOM_B'] as const;
export const sharingTrait = 'MISC_SHARES_VIA_AGGREGATE';
export const traits = ['HW_CPU_X86_AVX2', 'CUSTOM_S', 'CUSTOM_T'] as const;
export const aggregates: readonly string[] = Array.from({ length: 3 }, () => randomUUID());
/** All consumers that there may be. */
export const consumers: readonly string[] = Array.from({ length: 8 }, () => randomUUID());

export type KnownProvider = {
  readonly id: number;
  readonly uuid: string;
  readonly parent: string | null;
  readonly generation: number;
};

/** What clients know of the database. */
export type World = {
  readonly providers: readonly KnownProvider[];
  /** The generations of the consumers that exist. */
  readonly generations: ReadonlyMap<string, number>;
  /** Which consumer has something of which provider. */
  readonly held: readonly { readonly consumer: string; readonly provider: string }[];
};

/** What a change is about, and so the next claim often is as well. */
export type Subject = {
  readonly providers: readonly string[];
  /** Consumers that have something below one of these providers, or of it. */
  readonly consumers: readonly string[];
};

export function subjectOf({ providers, held }: World, touched: ReadonlySet<string>): Subject {
  const parents = new Map(providers.map(({ uuid, parent }) => [uuid, parent]));
  const isBelow = (uuid: string): boolean => {
    const passed = new Set<string>();
    for (let node: string | null = uuid; node !== null && !passed.has(node); node = parents.get(node) ?? null) {
      if (touched.has(node)) return true;
      passed.add(node);
    }
    return false;
  };
  const concerned = held.filter(({ provider }) => isBelow(provider)).map(({ consumer }) => consumer);
  return { providers: [...touched], consumers: [...new Set(concerned)].filter((uuid) => consumers.includes(uuid)) };
}

/** Makes the names and some trees, two of them with a provider that shares. */
export async function makeWorld(send: Send): Promise<void> {
  for (const name of ['CUSTOM_A', 'CUSTOM_B']) accepted(await send('PUT', `/resource_classes/${name}`));
  for (const name of ['CUSTOM_S', 'CUSTOM_T']) accepted(await send('PUT', `/traits/${name}`));
  for (let tree = 0; tree < 4; tree += 1) {
    const root = randomUUID();
    await makeProvider(send, root, { VCPU: { total: 16 } });
    await putParts(send, root, 1, tree % 2 === 0 ? ['CUSTOM_S'] : [], [aggregates[tree % 3] ?? '']);
    for (const [name, total] of [
      ['CUSTOM_A', 4],
      ['DISK_GB', 20],
    ] as const) {
      const child = randomUUID();
      await makeProvider(send, child, { [name]: { total } }, { parent_provider_uuid: root });
      const shares = name === 'DISK_GB' && tree < 2;
      if (shares) await putParts(send, child, 1, [sharingTrait], [aggregates[(tree + 1) % 3] ?? '']);
    }
  }
}

/** Sets the traits and aggregates of a provider at this generation. */
async function putParts(
  send: Send,
  uuid: string,
  generation: number,
  worn: readonly string[],
  memberOf: readonly string[],
): Promise<void> {
  const one = `/resource_providers/${uuid}`;
  accepted(await send('PUT', `${one}/traits`, { resource_provider_generation: generation, traits: worn }));
  // Traits that stay as they are raise no generation.
  const later = generation + (worn.length > 0 ? 1 : 0);
  accepted(await send('PUT', `${one}/aggregates`, { resource_provider_generation: later, aggregates: memberOf }));
}

export async function readWorld(client: pg.Client): Promise<World> {
  const { rows } = await client.query<{
    providers: KnownProvider[] | null;
    consumers: { uuid: string; generation: number }[] | null;
    held: World['held'] | null;
  }>(`select
    (select json_agg(json_build_object('id', p.id, 'uuid', p.uuid, 'generation', p.generation,
      'parent', (select uuid from resource_providers parent where parent.id = p.parent_provider_id)) order by id)
      from resource_providers p) as providers,
    (select json_agg(json_build_object('uuid', uuid, 'generation', generation)) from consumers) as consumers,
    (select json_agg(json_build_object('consumer', consumer_id, 'provider', p.uuid))
      from allocations a join resource_providers p on p.id = a.resource_provider_id) as held`);
  const [row] = rows;
  return {
    providers: row?.providers ?? [],
    held: row?.held ?? [],
    generations: new Map((row?.consumers ?? []).map(({ uuid, generation }) => [uuid, generation])),
  };
}

import { randomUUID } from 'node:crypto';
import { any, type Others } from './changes.ts';
import { aggregates, classes } from './world.ts';

const provider = (others: Others): number => any(others).id;
const classId = ({ random }: Others): string =>
  `(select id from resource_classes where name = '${random.pick(classes)}')`;
const traitId = ({ random }: Others): string =>
  `(select id from traits where name = '${random.pick(['CUSTOM_S', 'CUSTOM_T', 'MISC_SHARES_VIA_AGGREGATE'])}')`;
const aggregateId = ({ random }: Others): string =>
  `(select id from placement_aggregates where uuid = '${random.pick(aggregates)}')`;

/**
 * What another program does without raising the generations of providers. Only usages never grow without them: every program that
 * writes allocations raises the generations, since nothing else would keep two claims apart.
 */
export const changesBySql: Readonly<Record<string, (others: Others) => string>> = {
  sqlTotal: (others) =>
    `update inventories set total = ${1 + others.random.below(10)} where resource_provider_id = ${provider(others)}`,
  sqlInventory: (
    others,
  ) => `insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit,
    step_size, allocation_ratio) values (${provider(others)}, ${classId(others)}, ${1 + others.random.below(10)}, 0, 1, 10, 1, 1)`,
  sqlNoInventory: (
    others,
  ) => `delete from inventories i where resource_provider_id = ${provider(others)} and not exists (
    select from allocations a where a.resource_provider_id = i.resource_provider_id and a.resource_class_id = i.resource_class_id)`,
  sqlTrait: (others) =>
    `insert into resource_provider_traits (resource_provider_id, trait_id) values (${provider(others)}, ${traitId(others)})`,
  sqlNoTrait: (others) => `delete from resource_provider_traits where resource_provider_id = ${provider(others)}`,
  sqlMember: (others) => `insert into resource_provider_aggregates (resource_provider_id, aggregate_id)
    values (${provider(others)}, ${aggregateId(others)})`,
  sqlNoMember: (others) => `delete from resource_provider_aggregates where resource_provider_id = ${provider(others)}`,
  // Not below a provider that is below it.
  sqlMove: (others) => {
    const [moved, parent] = [provider(others), provider(others)];
    return `with recursive below as (
        select ${moved} as id union select p.id from below join resource_providers p on p.parent_provider_id = below.id
      ) update resource_providers set parent_provider_id = ${parent} where id = ${moved} and ${parent} not in (select id from below)`;
  },
  sqlRenameTrait: (others) =>
    `update traits set name = '${others.random.pick(['CUSTOM_S', 'CUSTOM_T', 'CUSTOM_U'])}' where id = ${traitId(others)} and name like 'CUSTOM%'`,
  sqlSwapUuids: (others) => {
    const [one, other] = [provider(others), provider(others)];
    return one === other
      ? ''
      : `do $$ declare first text; second text; begin
        select uuid into first from resource_providers where id = ${one}; select uuid into second from resource_providers where id = ${other};
        update resource_providers set uuid = '${randomUUID()}' where id = ${one};
        update resource_providers set uuid = first where id = ${other}; update resource_providers set uuid = second where id = ${one}; end $$`;
  },
  sqlAnotherAggregate: (others) =>
    `update placement_aggregates set uuid = '${randomUUID()}' where id = ${aggregateId(others)}`,
  sqlRelease: (others) => `delete from allocations where resource_provider_id = ${provider(others)}`,
  sqlGeneration: (others) =>
    `update resource_providers set generation = generation + 1, updated_at = now() where id = ${provider(others)}`,
  sqlNoTraits: (others) => (others.random.percent(10) ? 'truncate resource_provider_traits' : ''),
};

import { Document, isScalar, visit } from 'yaml';
import { type Inventory, providerUuid, type WholeProvider } from '../../client/index.ts';
import { escapeControlsInJson } from '../../text/print.ts';
import { compareNames } from '../../text/strings.ts';
import { isDrainMark, withoutDrain } from '../drain_marks.ts';
import { CommandFailure } from '../exit_codes.ts';
import { deepestLevel } from './fleet_file.ts';
import { isPoolMark, poolOf } from './pool_mark.ts';

/** A provider in the form of a file, with all that it has. */
type ExportedProvider = {
  readonly name: string;
  readonly uuid?: string;
  readonly inventories: { readonly [resourceClass: string]: Inventory };
  readonly traits: readonly string[];
  readonly aggregates: readonly string[];
  readonly children?: readonly ExportedProvider[];
};

/** A fleet in the form of a file. */
export type ExportedFleet = {
  readonly pool?: string;
  readonly aggregates?: { readonly [name: string]: string };
  readonly providers: readonly ExportedProvider[];
};

/**
 * Writes providers in the form of a file: whole trees, with all that they have, but without the marks of `placement drain` and of
 * `placement apply`; a drained provider as it is without its drain.
 *
 * @param aggregateNames names by UUID; other aggregates are shown by their UUIDs
 * @throws CommandFailure for a tree that is too deep for a file
 */
export function exportFleet(
  providers: readonly WholeProvider[],
  aggregateNames: ReadonlyMap<string, string>,
): ExportedFleet {
  const uuids = new Set(providers.map(({ uuid }) => uuid));
  // Other programs can write loops into the database; then a root has a parent.
  const parentOf = ({ uuid, root_provider_uuid: root, parent_provider_uuid: parent }: WholeProvider): string | null =>
    root === uuid || parent === null || !uuids.has(parent) ? null : parent;
  const children = Map.groupBy(
    providers.toSorted((one, other) => compareNames(one.name, other.name)),
    parentOf,
  );
  const used = new Map<string, string>();
  const exported = (provider: WholeProvider, level: number): ExportedProvider => {
    if (level > deepestLevel) {
      throw new CommandFailure(
        'failed',
        `The tree of ${provider.name} is deeper than the ${deepestLevel} levels that a file may have.`,
      );
    }
    const { uuid, name, inventories, traits, aggregates } = withoutDrain(provider);
    const below = children.get(uuid) ?? [];
    return {
      name,
      ...(uuid === providerUuid(name) ? {} : { uuid }),
      inventories,
      traits: traits.filter((trait) => !isPoolMark(trait) && !isDrainMark(trait)).toSorted(),
      aggregates: aggregates
        .map((aggregate) => {
          const named = aggregateNames.get(aggregate.toLowerCase());
          if (named !== undefined) used.set(named, aggregate);
          return named ?? aggregate;
        })
        .toSorted(),
      ...(below.length === 0 ? {} : { children: below.map((child) => exported(child, level + 1)) }),
    };
  };
  const trees = (children.get(null) ?? []).map((root) => exported(root, 1));
  const pools = new Set(providers.map(poolOf).filter((pool) => pool !== undefined));
  const [pool] = pools;
  return {
    ...(pools.size === 1 && pool !== undefined ? { pool } : {}),
    ...(used.size === 0 ? {} : { aggregates: Object.fromEntries([...used].toSorted()) }),
    providers: trees,
  };
}

/** Characters that a terminal obeys, and characters that begin a new line. They are escaped, which quotes make possible. */
const harmful = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** The fleet in YAML. An inventory is one line. */
export function yamlOf(fleet: ExportedFleet): string {
  const document = new Document(fleet, { aliasDuplicateObjects: false, compat: 'yaml-1.1' });
  visit(document, {
    Scalar: (_key, node) => {
      if (typeof node.value === 'string' && harmful.test(node.value)) node.type = 'QUOTE_DOUBLE';
    },
    Pair: (_key, pair, path) => {
      const above = path.at(-2);
      const isInventory =
        typeof above === 'object' && 'key' in above && isScalar(above.key) && above.key.value === 'inventories';
      // A collection of an inventory; its scalars have no such field.
      if (isInventory && typeof pair.value === 'object' && pair.value !== null)
        Object.assign(pair.value, { flow: true });
    },
  });
  const text = document.toString({ lineWidth: 0, doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER });
  return escapeControlsInJson(text).trimEnd();
}

import type { NameRow } from '../../../db/fleet/rows.ts';

/** A trait or a resource class. */
export type Name = {
  readonly id: number;
  readonly name: string;
  /** In seconds since 1970, like `updatedAtSeconds`. */
  readonly createdAtSeconds: number | undefined;
  readonly updatedAtSeconds: number | undefined;
};

/** All traits or all resource classes, by name and by id. They are ordered by id: standard ones before custom ones. */
export type Names = {
  readonly byName: ReadonlyMap<string, Name>;
  readonly byId: ReadonlyMap<number, Name>;
};

/** Sorts names by id, and maps them by name and by id. */
export function namesOf(rows: readonly NameRow[]): Names {
  const names = rows
    .map(({ id, name, created, updated }) => ({
      id,
      name,
      createdAtSeconds: created ?? undefined,
      updatedAtSeconds: updated ?? undefined,
    }))
    .sort((a, b) => a.id - b.id);
  return {
    byName: new Map(names.map((name) => [name.name, name])),
    byId: new Map(names.map((name) => [name.id, name])),
  };
}

/** The name of an id that a row refers to. Foreign keys and in-use checks prevent the deletion of such a name. */
export const nameOf = (names: Names, id: number): string => names.byId.get(id)?.name ?? `unknown id ${id}`;

/** Whether a trait or a class is custom: clients may delete, recreate or rename it. Standard names never change. */
export const isCustom = (name: string): boolean => name.startsWith('CUSTOM_');

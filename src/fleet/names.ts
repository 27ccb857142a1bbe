import type { NameRow } from './rows.ts';

/** A trait or a resource class. */
export type Name = {
  readonly id: number;
  readonly name: string;
  /** In seconds since 1970, as when it was updated. */
  readonly createdAtSeconds: number | undefined;
  readonly updatedAtSeconds: number | undefined;
};

/** The traits, or the resource classes, both ways. Ordered by id: standard ones before custom ones. */
export type Names = {
  readonly byName: ReadonlyMap<string, Name>;
  readonly byId: ReadonlyMap<number, Name>;
};

/** Puts names in order, and makes them known both ways. */
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

/** The name of an id that a row refers to: foreign keys and in-use checks keep it there. */
export const nameOf = (names: Names, id: number): string => names.byId.get(id)?.name ?? `unknown id ${id}`;

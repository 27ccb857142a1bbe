/** Something that a microversion brought; lists of them have the newest first. */
export type Since<Schema> = { readonly since: number; readonly schema: Schema };

/** The schema of a list that is in force at a version. */
export function bySince<const Schemas extends readonly Since<unknown>[]>(
  schemas: Schemas,
  version: number,
): Schemas[number]['schema'] {
  const found = schemas.find(({ since }) => since <= version);
  if (found === undefined) throw new Error(`no schema for version 1.${version}: its endpoint should not exist there`);
  return found.schema;
}

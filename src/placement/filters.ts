/** Required traits: at least one of each inner list. */
type RequiredTraits = readonly (readonly string[])[];
/** The names of required and of forbidden traits. */
export type TraitFilter = { readonly required: RequiredTraits; readonly forbidden: readonly string[] };

/**
 * The UUIDs, in all spellings under which they are looked for, of required aggregates (at least one of each inner list) and of forbidden
 * ones.
 */
export type AggregateFilter = {
  readonly required: readonly (readonly string[])[];
  readonly forbidden: readonly string[];
};

/** Amounts by class name. */
export type Resources = ReadonlyMap<string, number>;

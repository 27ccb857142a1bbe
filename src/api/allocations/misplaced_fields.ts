import { ApiError, withHint } from '../../request/errors.ts';
import { partsOf } from '../../rest/json_schema.ts';
import { dryRun, lined, placedConsumers } from './bodies.ts';

/**
 * Adds to the sentence of a refused body of POST /allocations where a field belongs that stands beside the consumers and is of each of
 * them, or the reverse.
 *
 * @returns the error to throw
 */
export function namingPlaces(refusal: unknown, body: unknown): unknown {
  if (!(refusal instanceof ApiError) || refusal.sentence === undefined) return refusal;
  const outside = keysOf(body).find((key) => consumerFields.has(key));
  const inside = Object.values(Object(body))
    .flatMap(keysOf)
    .find((key) => fieldsBeside.has(key));
  if (outside === undefined && inside === undefined) return refusal;
  const hint =
    outside === undefined
      ? `'${inside}' stands beside the consumers: {"UUID": {...}, "${inside}": ...}.`
      : `'${outside}' is a field of each consumer: {"UUID": {"${outside}": ..., ...}}.`;
  return withHint(refusal, hint);
}

const keysOf = (value: unknown): readonly string[] =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : [];

const consumerFields = new Set(
  placedConsumers.flatMap(({ schema }) => {
    const consumers = partsOf(schema);
    const one = consumers?.kind === 'keyed' ? partsOf(consumers.schemaOf('')) : undefined;
    return one?.kind === 'object' ? Object.keys(one.entries) : [];
  }),
);

const fieldsBeside = new Set(Object.keys({ ...dryRun, ...lined }));

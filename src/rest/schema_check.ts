import * as v from 'valibot';
import { ApiError } from '../request/errors.ts';
import { type Parts, partsOf, text } from './json_schema.ts';
import { type Query, requireUnrepeated } from './query_string.ts';
import { complaintOf, complaintSentence, failed, type Issues } from './schema_complaint.ts';

/** Checks a value from a request against a schema. @throws ApiError 400 naming the path and the value. */
export function checkValue<Schema extends v.GenericSchema>(
  value: unknown,
  schema: Schema,
  what = 'JSON does not validate',
): v.InferOutput<Schema> {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  throw invalidValue(result.issues, schema, what);
}

/** The error for a value with which something is wrong. */
export const invalidValue = (issues: Issues, schema: v.GenericSchema, what = 'JSON does not validate'): ApiError =>
  new ApiError(400, `${what}: ${complaintOf(issues)}`, {
    sentence: `${what}: ${complaintSentence(issues, (path) => namesAt(schema, path))}`,
  });

/** The names that an object may have at a path of a value; none where anything may be there. */
function namesAt(schema: v.GenericSchema, path: readonly (string | number)[]): readonly string[] {
  let at: v.GenericSchema | undefined = schema;
  for (const key of path) {
    const parts: Parts | undefined = at === undefined ? undefined : partsOf(unwrapped(at));
    if (parts === undefined) return [];
    // The entries of request schemas are schemas without promises.
    if (parts.kind === 'object') at = parts.entries[key] as v.GenericSchema | undefined;
    else at = parts.kind === 'list' ? parts.item : parts.schemaOf(String(key));
  }
  return at === undefined ? [] : namesOf(unwrapped(at));
}

/** A schema without what lets a value be missing or null. */
function unwrapped(schema: v.GenericSchema): v.GenericSchema {
  let inner = schema;
  while ('wrapped' in inner) inner = inner.wrapped as v.GenericSchema; // by valibot's optional and nullable
  return inner;
}

/** The names that an object may have at its top level; none for anything but an object. */
function namesOf(schema: v.GenericSchema): readonly string[] {
  const parts: readonly unknown[] = 'pipe' in schema && Array.isArray(schema.pipe) ? schema.pipe : [schema];
  return parts.flatMap((part) =>
    typeof part === 'object' && part !== null && 'entries' in part ? Object.keys(Object(part.entries)) : [],
  );
}

/**
 * Checks the parameters of a query against a schema; of a repeated parameter the last value counts.
 *
 * @throws ApiError 400 naming the parameter and the value.
 */
export const checkQuery = <Schema extends v.GenericSchema>(query: Query, schema: Schema): v.InferOutput<Schema> =>
  checkValue(Object.fromEntries(query.entries), schema, 'Invalid query string parameters');

/** A parameter that is an integer, as a number. It must have digits only. */
export const integerParameter = (minimum: number, maximum: number) =>
  v.pipe(
    text(),
    v.check(
      (value) => /^[0-9]+$/.test(value) && Number(value) >= minimum && Number(value) <= maximum,
      failed('pattern', (value) => `${value} is not an integer from ${minimum} to ${maximum}`),
    ),
    v.transform(Number),
  );

/** As `checkQuery`, for an operation that OpenStack does not have: each parameter may be given once, unless all of its values count. */
export function checkUnrepeated<Schema extends v.GenericSchema>(query: Query, schema: Schema): v.InferOutput<Schema> {
  const values = checkQuery(query, schema);
  requireUnrepeated(query);
  return values;
}

import * as v from 'valibot';
import { badRequest } from './errors.ts';
import { text } from './json_schema.ts';
import type { Query } from './query_string.ts';
import { checkValue } from './schema_check.ts';
import { failed } from './schema_complaint.ts';

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

/** Refuses parameters that are given more than once where one value is expected. @throws ApiError 400 naming parameter and values */
export function refuseRepeated(query: Query, names: Iterable<string>): void {
  for (const name of names) {
    const values = query.all(name);
    if (values.length < 2) continue;
    throw badRequest(
      `Invalid query string parameters: '${name}' is given ${values.length} times. Got: ${values.join(', ')}`,
    );
  }
}

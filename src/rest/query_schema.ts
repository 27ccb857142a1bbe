import type * as v from 'valibot';
import type { Query } from './query_string.ts';
import { checkValue } from './schema_check.ts';

/**
 * Checks the parameters of a query against a schema; of a repeated parameter the last value counts.
 *
 * @throws ApiError 400 naming the parameter and the value.
 */
export const checkQuery = <Schema extends v.GenericSchema>(query: Query, schema: Schema): v.InferOutput<Schema> =>
  checkValue(Object.fromEntries(query.entries), schema, 'Invalid query string parameters');

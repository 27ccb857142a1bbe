import type * as v from 'valibot';
import { checkValue } from '../schema/check.ts';
import type { Query } from './query_string.ts';

/**
 * Holds the parameters of a query, each by its last value, against a schema.
 *
 * @throws ApiError 400 naming the parameter and the value.
 */
export const checkQuery = <Schema extends v.GenericSchema>(query: Query, schema: Schema): v.InferOutput<Schema> =>
  checkValue(Object.fromEntries(query.entries), schema, 'Invalid query string parameters');

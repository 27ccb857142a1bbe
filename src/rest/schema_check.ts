import * as v from 'valibot';
import { badRequest } from './errors.ts';
import { complaintOf } from './schema_complaint.ts';

/** Checks a value from a request against a schema. @throws ApiError 400 naming the place and the value. */
export function checkValue<Schema extends v.GenericSchema>(
  value: unknown,
  schema: Schema,
  what = 'JSON does not validate',
): v.InferOutput<Schema> {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  throw badRequest(`${what}: ${complaintOf(result.issues)}`);
}

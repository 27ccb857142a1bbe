import * as v from 'valibot';
import { ApiError } from './errors.ts';
import { complaintOf, complaintSentence } from './schema_complaint.ts';

/** Checks a value from a request against a schema. @throws ApiError 400 naming the place and the value. */
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
    sentence: `${what}: ${complaintSentence(issues, namesOf(schema))}`,
  });

type Issues = Parameters<typeof complaintOf>[0];

/** The names that an object may have at its top level; none for anything but an object. */
function namesOf(schema: v.GenericSchema): readonly string[] {
  const parts: readonly unknown[] = 'pipe' in schema && Array.isArray(schema.pipe) ? schema.pipe : [schema];
  return parts.flatMap((part) =>
    typeof part === 'object' && part !== null && 'entries' in part ? Object.keys(Object(part.entries)) : [],
  );
}

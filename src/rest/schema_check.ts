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
  throw new ApiError(400, `${what}: ${complaintOf(result.issues)}`, {
    sentence: `${what}: ${complaintSentence(result.issues, namesOf(schema))}`,
  });
}

/** The names that an object may have at its top level; none for anything but an object. */
function namesOf(schema: v.GenericSchema): readonly string[] {
  const parts: readonly unknown[] = 'pipe' in schema && Array.isArray(schema.pipe) ? schema.pipe : [schema];
  return parts.flatMap((part) =>
    typeof part === 'object' && part !== null && 'entries' in part ? Object.keys(Object(part.entries)) : [],
  );
}

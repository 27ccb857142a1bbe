import * as v from 'valibot';
import { maxInteger } from '../placement/inventory.ts';
import { isUuidLike, normalUuid } from '../placement/uuid.ts';
import { type ApiError, badRequest } from '../request/errors.ts';
import { text } from '../rest/json_schema.ts';
import { parseInteger, type Query } from '../rest/query_string.ts';
import { chiefFault, failed, type Issues, pythonRepr, unexpectedText } from '../rest/schema_complaint.ts';

/** Texts that fit into Nova's columns. */
export const shortText = text({ minLength: 1, maxLength: 255 });

/** A host name; underscores occur in real systems. */
export const hostName = text({ minLength: 1, maxLength: 255, pattern: /^[a-zA-Z0-9-._]*$/ });

const truths = ['True', 'TRUE', 'true', '1', 'ON', 'On', 'on', 'YES', 'Yes', 'yes'];
const falsehoods = ['False', 'FALSE', 'false', '0', 'OFF', 'Off', 'off', 'NO', 'No', 'no'];

/** A boolean, or one of the words that Nova reads as one. */
export const truth = v.pipe(
  v.union(
    [v.boolean(), v.string()],
    failed('type', (value) => `${value} is not of type 'boolean', 'string'`),
  ),
  v.check(
    (value) => typeof value === 'boolean' || truths.includes(value) || falsehoods.includes(value),
    failed('enum', (value) => {
      const words = [true, ...truths, false, ...falsehoods].map(pythonRepr).join(', ');
      return `${value} is not one of [${words}]`;
    }),
  ),
  v.transform((value) => value === true || (typeof value === 'string' && truths.includes(value))),
);

/** The error for a body with which something is wrong, in Nova's words. */
export const invalidBody = (issues: Issues): ApiError => invalidInput(issues, 'field/attribute');

/** The rules of a query at a version: its parameters, whether they may be repeated, and how unknown parameters are treated. */
export type QuerySchema = {
  readonly parameters: Readonly<Record<string, v.GenericSchema>>;
  readonly repeatable: boolean;
  readonly others: 'ignored' | 'refused';
};

/** The values of the parameters of a query schema. */
type QueryValues<Schema extends QuerySchema> = Schema extends QuerySchema
  ? { readonly [Name in keyof Schema['parameters']]?: v.InferOutput<Schema['parameters'][Name]> }
  : never;

/**
 * The parameters of a query. Every value of a parameter must be valid; of a repeated parameter the last value counts.
 *
 * @throws ApiError 400 in Nova's words.
 */
export function readQuery<const Schema extends QuerySchema>(
  query: Query,
  { parameters, repeatable, others }: Schema,
): QueryValues<Schema> {
  const names = new Set(query.entries.map(([name]) => name));
  const unknown = [...names].filter((name) => !Object.hasOwn(parameters, name));
  if (others === 'refused' && unknown.length > 0) {
    throw badRequest(unexpectedText(unknown));
  }
  const read: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(parameters)) {
    const values = query.all(name);
    if (!repeatable && values.length > 1) {
      const list = pythonRepr(values);
      throw badRequest(`Invalid input for query parameters ${name}. Value: ${list}. ${list} is too long`);
    }
    for (const value of values) {
      const result = v.safeParse(v.object({ [name]: schema }), { [name]: value });
      if (!result.success) throw invalidInput(result.issues, 'query parameters');
      read[name] = result.output[name];
    }
  }
  return read as QueryValues<Schema>; // each value is the output of its parameter's schema
}

function invalidInput(issues: Issues, what: string): ApiError {
  const { path, sentence, value } = chiefFault(issues);
  const [message] = sentence.split('\n\nFailed validating ');
  const key = path.at(-1);
  if (key === undefined) return badRequest(message ?? sentence);
  const shown = typeof value === 'string' ? value : pythonRepr(value);
  return badRequest(`Invalid input for ${what} ${key}. Value: ${shown}. ${message}`);
}

/** The UUID in a path, in the usual spelling. @throws ApiError 400 in Nova's words where it is none. */
export function readUuid(written: string): string {
  if (!isUuidLike(written)) throw badRequest(`Invalid uuid ${written}`);
  return normalUuid(written);
}

/** A text as the integer id of a row: undefined where it is no integer, 0 where it is one that no row can have. */
export function integerId(written: string): number | undefined {
  const id = parseInteger(written);
  if (id === undefined) return undefined;
  return id > 0 && id <= maxInteger ? id : 0;
}

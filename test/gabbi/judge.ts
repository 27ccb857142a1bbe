import { isDeepStrictEqual } from 'node:util';
import { jsonPathValue } from './jsonpath.ts';
import type { GabbiTest, Value } from './parse.ts';
import { pythonRegex, pythonText } from './python.ts';
import type { Response } from './send.ts';
import { type Context, substitute, substituteText } from './substitute.ts';

/** Reads the JSON of a file beside the gabbi file. A test names the file as `<@name`. */
export type ReadJson = (file: string) => Value;

/** One sentence for each difference between the response and the test. Empty if the test passes. */
export function judge(test: GabbiTest, response: Response, context: Context, readJson: ReadJson): readonly string[] {
  const json = Object.entries(test.response_json_paths);
  return [
    ...judgeStatus(test.status, response),
    ...test.response_forbidden_headers.flatMap((name) => judgeForbidden(substituteText(name, context), response)),
    ...Object.entries(test.response_headers).flatMap(([name, value]) =>
      attempt(() => judgeHeader(substituteText(name, context), pythonText(value), response, context)),
    ),
    ...test.response_strings.flatMap((text) => attempt(() => judgeText(text, response, context))),
    ...json.flatMap(([path, value]) => attempt(() => judgeJson(path, value, response, context, readJson))),
  ];
}

function judgeStatus(expected: string, { status }: Response): readonly string[] {
  const allowed = expected.split('||').map((text) => text.trim());
  return allowed.includes(`${status}`) ? [] : [`The status is ${status}, not ${allowed.join(' or ')}.`];
}

const judgeForbidden = (name: string, { headers }: Response): readonly string[] =>
  name.toLowerCase() in headers ? [`There is a forbidden header ${name}: ${headers[name.toLowerCase()]}`] : [];

function judgeHeader(name: string, expected: string, { headers }: Response, context: Context): readonly string[] {
  const found = headers[name.toLowerCase()];
  if (found === undefined) return [`There is no header ${name}, only ${Object.keys(headers).join(', ')}.`];
  const wanted = substituteText(expected, context, isRegex(expected));
  const equal = isRegex(expected) ? matches(wanted, found) : wanted === found;
  return equal ? [] : [`The header ${name} is ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}.`];
}

function judgeText(expected: string, { text }: Response, context: Context): readonly string[] {
  const wanted = substituteText(expected, context, isRegex(expected));
  const found = isRegex(expected) ? matches(wanted, text) : text.includes(wanted);
  return found ? [] : [`The body has no ${JSON.stringify(wanted)}.`];
}

function judgeJson(
  path: string,
  value: Value,
  response: Response,
  context: Context,
  readJson: ReadJson,
): readonly string[] {
  const found = jsonPathValue(response.json, substituteText(path, context));
  if (typeof value === 'string' && isRegex(value)) {
    const wanted = substituteText(value, context, true);
    return matches(wanted, pythonText(found))
      ? []
      : [`At ${path} is ${pythonText(found)}, which ${wanted} does not match.`];
  }
  const wanted =
    typeof value === 'string' && value.startsWith('<@')
      ? fromFile(value, context, readJson)
      : substitute(value, context);
  if (isDeepStrictEqual(found, wanted)) return [];
  return [`At ${path} is ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}.`];
}

/** `<@file` is the whole file, `<@file:$.path` a part of it. */
function fromFile(value: string, context: Context, readJson: ReadJson): Value {
  const [file = '', path] = value.slice('<@'.length).split(':$', 2);
  const json = readJson(file);
  return path === undefined ? json : jsonPathValue(json, substituteText(`$${path}`, context));
}

const isRegex = (text: string): boolean => text.length > 1 && text.startsWith('/') && text.endsWith('/');

/** Whether the regular expression between the slashes is found in the text. */
const matches = (regex: string, text: string): boolean => pythonRegex(regex.slice(1, -1)).test(text);

/** A check that throws has failed. */
function attempt(check: () => readonly string[]): readonly string[] {
  try {
    return check();
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

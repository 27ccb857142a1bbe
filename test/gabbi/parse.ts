import { parse } from 'yaml';

/** The values of YAML and JSON. */
export type Value = null | boolean | number | string | readonly Value[] | ValueMap;
export type ValueMap = { readonly [key: string]: Value };

/**
 * One request and the expected response. The keys are defined in https://gabbi.readthedocs.io/en/latest/format.html.
 */
export type GabbiTest = {
  readonly name: string;
  readonly desc: string;
  readonly method: string;
  readonly url: string;
  readonly query_parameters: ValueMap;
  readonly request_headers: ValueMap;
  readonly data: Value;
  readonly redirects: boolean;
  readonly poll: ValueMap;
  readonly skip: string;
  readonly xfail: boolean;
  readonly verbose: boolean | string;
  readonly status: string;
  readonly response_headers: ValueMap;
  readonly response_forbidden_headers: readonly string[];
  readonly response_strings: readonly string[];
  readonly response_json_paths: ValueMap;
};

/** A YAML file: its fixtures, outermost first, and its tests in order. */
export type Gabbit = { readonly fixtures: readonly string[]; readonly tests: readonly GabbiTest[] };

/** The keys of a test with their default values. */
const baseTest = {
  name: '',
  desc: '',
  method: 'GET',
  url: '',
  query_parameters: {},
  request_headers: {},
  data: '',
  redirects: false,
  poll: {},
  skip: '',
  xfail: false,
  verbose: false,
  status: '200',
  response_headers: {},
  response_forbidden_headers: [],
  response_strings: [],
  response_json_paths: {},
  // These keys are accepted and have no effect: requests are always sent in order, over plain HTTP, to the given
  // server.
  use_prior_test: true,
  cert_validate: true,
  ssl: false,
  disable_response_handler: false,
} as const satisfies ValueMap;

/**
 * Reads a gabbi file. YAML is read as version 1.1, as PyYAML does. The last of two equal keys wins.
 *
 * @throws Error with the test and the key if the file does not follow the definition of gabbi
 */
export function parseGabbit(text: string): Gabbit {
  const file: unknown = parse(text, { version: '1.1', merge: true, uniqueKeys: false, maxAliasCount: -1 });
  if (!isMap(file)) throw new Error('A gabbi file is a mapping with the key "tests".');
  const { defaults = {}, fixtures = [], tests } = file;
  if (!isMap(defaults)) throw new Error('The key "defaults" of a gabbi file is a mapping.');
  if (!Array.isArray(tests)) throw new Error('A gabbi file has the key "tests", a list.');
  const method = Object.keys(defaults).find(isMethod);
  if (method !== undefined) throw new Error(`The key "defaults" has "${method}: url", which belongs to a test.`);
  const merged = merge(baseTest, defaults);
  return {
    fixtures: strings(fixtures ?? [], 'fixtures', 'the file'),
    tests: tests.map((test: Value) => parseTest(merged, test)),
  };
}

function parseTest(defaults: ValueMap, written: Value): GabbiTest {
  if (!isMap(written)) throw new Error(`A test is a mapping, not ${JSON.stringify(written)}.`);
  const merged = merge(defaults, written);
  const where = `test "${merged.name}"`;
  if (merged.name === '' || typeof merged.name !== 'string') throw new Error(`${where} has no name.`);
  const methods = Object.keys(merged).filter(isMethod);
  if (methods.length > 1) throw new Error(`${where} has several methods: ${methods.join(', ')}.`);
  const unknown = Object.keys(merged).filter((key) => !(key in baseTest) && !isMethod(key));
  if (unknown.length > 0) throw new Error(`${where} has unknown keys: ${unknown.join(', ')}.`);
  const [shorthand] = methods;
  const url = shorthand === undefined ? merged.url : merged[shorthand];
  if (typeof url !== 'string' || url === '') throw new Error(`${where} has no url.`);
  const map = (key: keyof typeof baseTest): ValueMap => {
    const value = merged[key];
    if (!isMap(value)) throw new Error(`${where}: "${key}" is a mapping, not ${JSON.stringify(value)}.`);
    return value;
  };
  const text = (key: keyof typeof baseTest): string => `${merged[key] ?? ''}`;
  return {
    name: merged.name,
    desc: text('desc'),
    method: (shorthand ?? text('method')).toUpperCase(),
    url,
    query_parameters: map('query_parameters'),
    request_headers: map('request_headers'),
    data: merged.data ?? null,
    redirects: merged.redirects === true,
    poll: map('poll'),
    skip: text('skip'),
    xfail: merged.xfail === true,
    verbose: typeof merged.verbose === 'string' ? merged.verbose : merged.verbose === true,
    status: text('status'),
    response_headers: map('response_headers'),
    response_forbidden_headers: strings(merged.response_forbidden_headers, 'response_forbidden_headers', where),
    response_strings: strings(merged.response_strings, 'response_strings', where),
    response_json_paths: map('response_json_paths'),
  };
}

/** gabbi's rule: mappings are merged, lists are appended, everything else and `data` is replaced. */
function merge(below: ValueMap, above: ValueMap): ValueMap {
  const merged: Record<string, Value> = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const old = below[key];
    if (key !== 'data' && isMap(value) && isMap(old)) merged[key] = { ...old, ...value };
    else if (key !== 'data' && Array.isArray(value) && Array.isArray(old)) merged[key] = [...old, ...value];
    else merged[key] = value;
  }
  return merged;
}

export const isMap = (value: unknown): value is ValueMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isMethod = (key: string): boolean => key === key.toUpperCase() && key !== key.toLowerCase();

function strings(value: unknown, key: string, where: string): readonly string[] {
  if (!Array.isArray(value)) throw new Error(`${where}: "${key}" is a list, not ${JSON.stringify(value)}.`);
  return value.map((item) => `${item}`);
}

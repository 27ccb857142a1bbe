import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { judge } from './judge.ts';
import { type GabbiTest, type Gabbit, isMap, type Value, type ValueMap } from './parse.ts';
import { pythonText } from './python.ts';
import { type Exchange, isJson, keptConnection, type Request, send, splitUrl } from './send.ts';
import { type Context, type Past, substitute, substituteText } from './substitute.ts';

export type TestResult = {
  readonly name: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** The reason of a failure, with the request and the response. Empty if the test did not fail. */
  readonly message: string;
};

export type RunOptions = {
  /** The URL of the server, `http://127.0.0.1:8778`. A path in it is put before the path of each request. */
  readonly baseUrl: string;
  /** The values of `$ENVIRON[..]`. */
  readonly environment: Readonly<Record<string, string>>;
  /** The folder of the file, for `<@file`. */
  readonly folder: string;
  /** Called with each request and its response. If it throws, the test fails. */
  readonly observe?: ((exchange: Exchange, test: GabbiTest) => void) | undefined;
  /** Writes the output of `verbose` tests. */
  readonly log?: ((text: string) => void) | undefined;
};

/** Runs the tests of a file, one after another, against a server with the data of the file's fixtures. */
export async function runGabbit(gabbit: Gabbit, options: RunOptions): Promise<readonly TestResult[]> {
  const agent = keptConnection();
  const history = new Map<string, Past>();
  const results: TestResult[] = [];
  let prior: Past | undefined;
  try {
    for (const test of gabbit.tests) {
      const { scheme, netloc, target } = splitUrl(options.baseUrl);
      const prefix = target.replace(/\/$/, '');
      const context = { scheme, netloc: netloc + prefix, environment: options.environment, prior, history };
      const attempt: Attempt = { test, context, options, prefix, agent, past: undefined };
      results.push(await runTest(attempt));
      prior = attempt.past;
    }
    return results;
  } finally {
    agent.destroy();
  }
}

type Attempt = {
  readonly test: GabbiTest;
  readonly context: Context & { readonly history: Map<string, Past> };
  readonly options: RunOptions;
  readonly prefix: string;
  readonly agent: ReturnType<typeof keptConnection>;
  /** The last request and response, for the tests after this one. */
  past: (Past & { readonly request: Request }) | undefined;
};

async function runTest(attempt: Attempt): Promise<TestResult> {
  const { test, context, options } = attempt;
  const { name } = test;
  let problems: readonly string[];
  try {
    if (substituteText(test.skip, context) !== '') return { name, outcome: 'skipped', message: '' };
    problems = await untilItPasses(attempt);
  } catch (error) {
    problems = [error instanceof Error ? error.message : String(error)];
  }
  if (test.verbose !== false) options.log?.(`${name}\n${describe(attempt.past)}\n`);
  if (test.xfail) {
    if (problems.length > 0) return { name, outcome: 'passed', message: '' };
    return { name, outcome: 'failed', message: 'The test is marked xfail and passed.' };
  }
  if (problems.length === 0) return { name, outcome: 'passed', message: '' };
  return { name, outcome: 'failed', message: [...problems, describe(attempt.past)].join('\n') };
}

/** `poll` repeats the request up to `count` times, `delay` seconds apart. */
async function untilItPasses(attempt: Attempt): Promise<readonly string[]> {
  const { poll } = attempt.test;
  const once = Object.keys(poll).length === 0;
  const number = (key: string): number => Number(substitute(poll[key] ?? 1, attempt.context));
  const count = once ? 1 : Math.trunc(number('count'));
  let problems: readonly string[] = ['The request was not sent, since poll has no positive count.'];
  for (let sent = 1; sent <= count; sent += 1) {
    problems = await requestAndJudge(attempt);
    if (problems.length === 0 || sent === count) break;
    await sleep(number('delay') * 1000);
  }
  return problems;
}

async function requestAndJudge(attempt: Attempt): Promise<readonly string[]> {
  const { test, context, options } = attempt;
  const url = substituteText(test.url, context);
  let request = requestOf(attempt, url);
  let response = await send(request, attempt.agent);
  for (let follow = 1; test.redirects && follow <= 5 && isRedirect(response.status); follow += 1) {
    request = redirected(request, response.headers.location ?? '', response.status);
    response = await send(request, attempt.agent);
  }
  attempt.past = { url, request, response };
  context.history.set(test.name, attempt.past);
  const read = (file: string): Value => JSON.parse(readFile(options.folder, file).toString('utf8')) as Value; // it is JSON
  const problems = judge(test, response, context, read);
  try {
    options.observe?.({ request, response }, test);
  } catch (error) {
    return [...problems, error instanceof Error ? error.message : String(error)];
  }
  return problems;
}

function requestOf({ test, context, options, prefix }: Attempt, url: string): Request {
  const entries = Object.entries(test.request_headers).map(([name, value]) => [
    substituteText(name, context),
    pythonText(substitute(value, context)),
  ]);
  const headers: Record<string, string> = Object.fromEntries(entries);
  const type = Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? '';
  const absolute = /^https?:/i.test(url) ? url : `${context.scheme}://${context.netloc}${withoutPrefix(url, prefix)}`;
  return {
    method: test.method,
    url: withQuery(absolute, test.query_parameters, context),
    headers,
    body: bodyOf(test.data, type, context, options.folder),
  };
}

function withoutPrefix(url: string, prefix: string): string {
  const path = url.startsWith('/') ? url : `/${url}`;
  return prefix !== '' && path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

function withQuery(url: string, parameters: ValueMap, context: Context): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    const values: readonly Value[] = Array.isArray(value) ? value : [value];
    for (const one of values) query.append(name, pythonText(substitute(one, context)));
  }
  if (query.size === 0) return url;
  const [withoutFragment = ''] = url.split('#', 1);
  return `${withoutFragment}${withoutFragment.includes('?') ? '&' : '?'}${query}`;
}

/** `data`: a text is sent as it is, `<@file` is the content of the file, and anything else is sent as JSON. */
function bodyOf(data: Value, contentType: string, context: Context, folder: string): string | Uint8Array {
  if (data === '') return '';
  if (typeof data === 'string' && data.startsWith('<@')) {
    const content = readFile(folder, data.slice('<@'.length));
    const isText = isJson(contentType) || contentType.startsWith('text/');
    return isText ? substituteText(content.toString('utf8'), context) : content;
  }
  if (!isJson(contentType) && (Array.isArray(data) || isMap(data))) {
    throw new Error(`The data is a mapping or list, and content-type is ${contentType || 'missing'}, not JSON.`);
  }
  // Placeholders are replaced once more in the resulting text. This also reaches the keys of mappings.
  const replaced = substitute(data, context);
  const text = Array.isArray(data) || isMap(data) ? JSON.stringify(replaced) : replaced;
  const body = substitute(text, context);
  if (typeof body === 'string') return body;
  return isJson(contentType) ? JSON.stringify(body) : pythonText(body);
}

/** @throws Error if the file is not in the folder */
function readFile(folder: string, file: string): Buffer {
  const found = path.join(folder, file);
  if (path.relative(folder, found).startsWith('..')) throw new Error(`The file ${file} is outside of ${folder}.`);
  return readFileSync(found);
}

const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status);

function redirected(request: Request, location: string, status: number): Request {
  const url = new URL(location, request.url).href;
  return status === 303 ? { ...request, url, method: 'GET', body: '' } : { ...request, url };
}

function describe(past: Attempt['past']): string {
  if (past === undefined) return '';
  const { request, response } = past;
  const lines = (headers: Readonly<Record<string, string>>, mark: string) =>
    Object.entries(headers).map(([name, value]) => `${mark} ${name}: ${value}`);
  const { status, reason, ...headers } = response.headers;
  const body = typeof request.body === 'string' ? request.body : `${request.body.length} bytes`;
  return [
    `> ${request.method} ${request.url}`,
    ...lines(request.headers, '>'),
    ...(body === '' ? [] : [body]),
    `< ${status} ${reason}`,
    ...lines(headers, '<'),
    response.text.length > 2000 ? `${response.text.slice(0, 2000)}...` : response.text,
  ].join('\n');
}

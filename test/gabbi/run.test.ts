import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { parseGabbit } from './parse.ts';
import { type RunOptions, runGabbit, type TestResult } from './run.ts';

/** Answers `/echo` with the request, `/count` with the number of requests so far, `/moved` with a redirect. */
const server = http.createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const { method = '', url = '', headers } = request;
  if (url === '/moved') response.writeHead(302, { location: '/echo' }).end();
  else if (url === '/text') response.writeHead(200, { 'content-type': 'text/plain' }).end('plain text');
  else if (url === '/broken') response.writeHead(200, { 'content-type': 'application/json' }).end('{');
  else if (url === '/count') {
    received += 1;
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ received }));
  } else {
    const body = Buffer.concat(chunks).toString();
    const location = `http://${headers.host}/made/1`;
    response
      .writeHead(201, { 'content-type': 'application/json; charset=utf-8', location, 'x-many': ['a', 'b'] })
      .end(JSON.stringify({ method, url, headers, body, list: [1, 'two', null], amount: 10.5 }));
  }
});
let received = 0;
let baseUrl = '';

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (typeof address === 'object' && address !== null) baseUrl = `http://127.0.0.1:${address.port}`;
});
after(() => server.close());

const run = (yaml: string, options: Partial<RunOptions> = {}): Promise<readonly TestResult[]> =>
  runGabbit(parseGabbit(yaml), { baseUrl, environment: { WORD: 'wo.rd' }, folder: import.meta.dirname, ...options });

/** The outcome of a file with this one test. */
const runOne = async (keys: string, options?: Partial<RunOptions>): Promise<TestResult> => {
  const [result] = await run(`tests: [{ name: one, ${keys} }]`, options);
  assert.ok(result);
  return result;
};

for (const [what, keys] of [
  ['a status', 'GET: /echo, status: 201'],
  ['one of several statuses', 'GET: /echo, status: 200 || 201'],
  ['a header', 'GET: /echo, status: 201, response_headers: { X-Many: "a, b" }'],
  ['a header by regular expression', 'GET: /echo, status: 201, response_headers: { location: "/made.\\\\d$/" }'],
  ['a header with a substitution', 'GET: /echo, status: 201, response_headers: { location: $SCHEME://$NETLOC/made/1 }'],
  ['a header that is absent', 'GET: /text, response_forbidden_headers: [x-many]'],
  ['a text', 'GET: /text, response_strings: [plain, text]'],
  ['a text by regular expression', 'GET: /text, response_strings: ["/^plain \\\\w+$/"]'],
  ['a JSON value', 'GET: /echo, status: 201, response_json_paths: { $.amount: 10.5, "$.list[2]": null }'],
  ['a JSON list', 'GET: /echo, status: 201, response_json_paths: { $.list: [1, two, null] }'],
  ['a JSON value by regular expression', 'GET: /echo, status: 201, response_json_paths: { $.amount: /^10/ }'],
  [
    'a JSON list as Python writes it',
    `GET: /echo, status: 201, response_json_paths: { $.list: "/^.1, 'two', None.$/" }`,
  ],
  [
    'an escaped variable',
    `POST: /echo, status: 201, data: wo.rd, response_json_paths: { $.body: "/^$ENVIRON['WORD']$/" }`,
  ],
  [
    'a header of the request',
    `GET: /echo, status: 201, request_headers: { X-A: 1 }, response_json_paths: { '$.headers["x-a"]': "1" }`,
  ],
  [
    'data as JSON',
    `PUT: /echo, status: 201, request_headers: { content-type: application/json }, data: { "$ENVIRON['WORD']": ["$ENVIRON['WORD']"] }, response_json_paths: { $.body: '{"wo.rd":["wo.rd"]}' }`,
  ],
  ['data of GET', 'GET: /echo, status: 201, data: some, response_json_paths: { $.body: some, $.method: GET }'],
  ['the length of no data', `GET: /echo, status: 201, response_json_paths: { '$.headers["content-length"]': "0" }`],
  [
    'query parameters',
    'GET: "/echo?x=0", status: 201, query_parameters: { a: [1, 2], b: "c d" }, response_json_paths: { $.url: "/echo?x=0&a=1&a=2&b=c+d" }',
  ],
  [
    'a url with odd characters',
    'GET: "/echo/\u00fc %41", status: 201, response_json_paths: { $.url: /echo/%C3%BC%20%41 }',
  ],
  ['a redirect', 'GET: /moved, redirects: true, status: 201'],
  ['no redirect unless wanted', 'GET: /moved, status: 302'],
  ['another method', 'JUMP: /nowhere, status: 400'],
  ['an expected failure', 'GET: /echo, status: 404, xfail: true'],
] as const) {
  test(`${what} passes`, async () => {
    assert.deepEqual(await runOne(keys), { name: 'one', outcome: 'passed', message: '' });
  });
}

for (const [what, keys, message] of [
  ['a wrong status', 'GET: /echo', /The status is 201, not 200\./],
  ['a status out of several', 'GET: /echo, status: 200 || 204', /The status is 201, not 200 or 204\./],
  ['a wrong header', 'GET: /text, response_headers: { content-type: text/html }', /is "text\/plain", not "text\/html"/],
  ['a missing header', 'GET: /text, response_headers: { x-many: a }', /There is no header x-many/],
  [
    'a header that its pattern does not match',
    'GET: /text, response_headers: { content-type: /html/ }',
    /not "\/html\/"/,
  ],
  ['a forbidden header', 'GET: /text, response_forbidden_headers: [Content-Type]', /forbidden header Content-Type/],
  ['a missing text', 'GET: /text, response_strings: [fancy]', /The body has no "fancy"/],
  ['a text that its pattern does not match', 'GET: /text, response_strings: [/^text/]', /The body has no "\/\^text\/"/],
  [
    'a wrong JSON value',
    'GET: /echo, status: 201, response_json_paths: { $.amount: 10 }',
    /At \$\.amount is 10\.5, not 10\./,
  ],
  [
    'a text instead of a number',
    'GET: /echo, status: 201, response_json_paths: { $.amount: "10.5" }',
    /is 10\.5, not "10\.5"/,
  ],
  [
    'a wrong order in JSON',
    'GET: /echo, status: 201, response_json_paths: { $.list: [two, 1, null] }',
    /At \$\.list is/,
  ],
  ['a missing JSON value', 'GET: /echo, status: 201, response_json_paths: { $.other: null }', /\$\.other is not in/],
  [
    'a JSON value that its pattern does not match',
    'GET: /echo, status: 201, response_json_paths: { $.amount: /^11/ }',
    /does not match/,
  ],
  ['JSON in a text', 'GET: /text, response_json_paths: { $: 1 }', /there is no JSON/],
  ['JSON that is not', 'GET: /broken', /is not JSON: \{/],
  ['an unknown variable', 'GET: "/$ENVIRON[\'OTHER\']"', /no OTHER in the environment/],
  ['data that cannot be sent', 'PUT: /echo, data: { a: 1 }', /content-type is missing, not JSON/],
  ['a file outside of the folder', 'PUT: /echo, data: "<@../../package.json"', /is outside of/],
  ['an unexpected success', 'GET: /echo, status: 201, xfail: true', /marked xfail and passed/],
] as const) {
  test(`${what} fails`, async () => {
    const { outcome, message: found } = await runOne(keys);
    assert.equal(outcome, 'failed');
    assert.match(found, message);
  });
}

test('every problem is reported, with the request and the response', async () => {
  const { message } = await runOne('GET: /text, status: 404, response_strings: [q, z], request_headers: { x-a: 1 }');
  for (const part of ['not 404', 'no "q"', 'no "z"', `> GET ${baseUrl}/text`, '> x-a: 1', '< 200', 'plain text']) {
    assert.ok(message.includes(part), part);
  }
});

test('a test fails if no server listens', async () => {
  assert.equal((await runOne('GET: /', { baseUrl: 'http://127.0.0.1:1' })).outcome, 'failed');
});

test('a skipped test is not sent, and the tests after it have no prior response', async () => {
  const before = received;
  const results = await run(`
    tests:
      - { name: left out, GET: /count, skip: not today }
      - { name: behind it, GET: "/$RESPONSE['received']" }
  `);
  assert.deepEqual(
    results.map(({ outcome }) => outcome),
    ['skipped', 'failed'],
  );
  assert.equal(received, before);
});

test('poll repeats the request until it passes, count times at most', async () => {
  const start = received;
  const poll = (count: number, wanted: number) =>
    runOne(`GET: /count, poll: { count: ${count}, delay: 0.001 }, response_json_paths: { $.received: ${wanted} }`);
  assert.equal((await poll(5, start + 3)).outcome, 'passed');
  assert.equal(received, start + 3);
  assert.equal((await poll(4, 0)).outcome, 'failed');
  assert.equal(received, start + 7);
});

test('tests can refer to earlier tests, also to failed ones', async () => {
  const results = await run(`
    tests:
      - { name: make, POST: /echo, status: 404, data: first }
      - { name: follow, GET: $LOCATION, status: 201, response_json_paths: { $.url: /made/1 } }
      - name: look back
        GET: "/echo?$HISTORY['make'].$RESPONSE['body']"
        status: 201
        response_json_paths: { $.url: "/echo?$HISTORY['make'].$RESPONSE['$.body']" }
  `);
  assert.deepEqual(
    results.map(({ outcome }) => outcome),
    ['failed', 'passed', 'passed'],
  );
});

test('a prefix of the base URL is put before each path', async () => {
  const keys = 'GET: /echo, status: 201, response_json_paths: { $.url: /placement/echo }';
  assert.equal((await runOne(keys, { baseUrl: `${baseUrl}/placement` })).outcome, 'passed');
});

test('an observer sees each exchange, and can make a test fail', async () => {
  const seen: string[] = [];
  await run('tests: [{ name: a, GET: /text }, { name: b, GET: /echo, status: 201 }]', {
    observe: ({ request, response }, { name }) =>
      seen.push(`${name} ${request.method} ${request.url} ${response.status}`),
  });
  assert.deepEqual(seen, [`a GET ${baseUrl}/text 200`, `b GET ${baseUrl}/echo 201`]);
  const observe = () => {
    throw new Error('not in the description');
  };
  const { outcome, message } = await runOne('GET: /text', { observe });
  assert.equal(outcome, 'failed');
  assert.match(message, /not in the description/);
});

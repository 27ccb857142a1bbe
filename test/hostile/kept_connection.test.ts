/** Valid and hostile requests on one persistent connection, sent without waiting: each answer belongs to its request, in their order. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomFrom, randomUuid, seedFor } from '../races/random.ts';
import { readAnswers } from './answers.ts';
import { goodHeaders, host, lines, withHostileServer } from './server.ts';

/** A request, and a text that only its answer has. */
type Sent = {
  readonly text: string;
  readonly status: number;
  /** A part of the body of the answer. */
  readonly contained: string;
  /** The number of times that the server asks for the body. */
  readonly continues?: number;
};

const kept = goodHeaders.filter((line) => !line.startsWith('Connection'));
const get = (path: string, ...headers: readonly string[]): string => lines(`GET ${path} HTTP/1.1`, ...kept, ...headers);
const send = (method: string, path: string, body: string, ...headers: readonly string[]): string =>
  lines(
    `${method} ${path} HTTP/1.1`,
    ...kept,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...headers,
  ) + body;
const smuggled = send('POST', '/resource_providers', '{"name": "smuggled"}');

/** Requests after which the connection stays open. The answer names `id`, which no other request of the test has. */
const keeping: readonly ((id: string) => Sent)[] = [
  (id) => ({ text: get(`/resource_providers/${id}`), status: 404, contained: id }),
  (id) => ({ text: get(`/resource_providers?in_tree=x${id}`), status: 400, contained: `x${id}` }),
  (id) => ({ text: get(`/resource_providers?name=${id}`), status: 200, contained: '{"resource_providers":[]}' }),
  (id) => ({ text: get(`/resource_providers/${host}`, `X-Id: ${id}`), status: 200, contained: host }),
  (id) => ({ text: get(`/traits/${id}%00`), status: 404, contained: id }),
  (id) => ({ text: send('POST', '/resource_providers', `{"name": 1, "a${id}": 2}`), status: 400, contained: `a${id}` }),
  (id) => ({ text: send('DELETE', `/allocations/${id}`, ''), status: 404, contained: id }),
  (id) => ({
    text: send('PUT', `/resource_providers/${id}`, '{"name": "a"}', 'Expect: 100-continue'),
    status: 404,
    contained: id,
    continues: 1,
  }),
  // The body is a whole request, which must not be taken for one.
  (id) => ({
    text: send('POST', `/resource_providers?a${id}`, smuggled, 'Expect: x, 100-Continue'),
    status: 400,
    contained: 'JSON',
    continues: 1,
  }),
  (id) => ({
    text: `${lines(`PUT /resource_providers/${id} HTTP/1.1`, ...kept, 'Content-Type: application/json', 'Transfer-Encoding: chunked')}d\r\n{"name": "a"}\r\n0\r\n\r\n`,
    status: 404,
    contained: id,
  }),
];

const both = ['Content-Length: 4', 'Transfer-Encoding: chunked'];
const twoHosts = 'Host: elsewhere';

/** Requests that are refused, with and without an expectation, and after which the connection is closed. */
const ending: readonly (readonly [what: string, text: string, status: number])[] = [
  ...[[], ['Expect: 100-continue'], ['Expect: something'], ['Expect: something', 'Expect: 100-continue']].flatMap(
    (expectation): [string, string, number][] => {
      const also = expectation.length > 0 ? ` and ${expectation.join(', ')}` : '';
      return [
        [`two hosts${also}`, get('/traits', twoHosts, ...expectation), 400],
        [`no host${also}`, lines('GET /traits HTTP/1.1', ...kept.slice(1), ...expectation), 400],
        [`both lengths${also}`, lines('POST /allocations HTTP/1.1', ...kept, ...expectation, ...both), 400],
        [`two lengths${also}`, get('/traits', 'Content-Length: 1', 'Content-Length: 2', ...expectation), 400],
        [`two hosts, with a body${also}`, send('POST', '/traits', smuggled, twoHosts, ...expectation), 400],
      ];
    },
  ),
  ['an unknown expectation', get('/traits', 'Expect: something'), 417],
  ['an unknown expectation, with a body', send('POST', '/resource_providers', smuggled, 'Expect: x=y'), 417],
  ['an empty expectation', get('/traits', 'Expect:'), 417],
  [
    'an unknown expectation, with broken chunks',
    `${lines('POST /allocations HTTP/1.1', ...kept, 'Expect: x', 'Transfer-Encoding: chunked')}xyz\r\n`,
    417,
  ],
];

test('a hostile request is refused in its turn, and nothing behind it is carried out', (t) =>
  withHostileServer(async (server) => {
    const random = randomFrom(seedFor(t));
    for (const [what, text, status] of ending) {
      for (const isCut of [false, true]) {
        const before = Array.from({ length: random.below(8) }, () => random.pick(keeping)(randomUuid(random)));
        const all = [...before.map((each) => each.text), text, smuggled, get('/traits')].join('');
        const cut = 1 + random.below(all.length - 1);
        const reply = await server.send(isCut ? [all.slice(0, cut), all.slice(cut)] : all);
        assert.ok(reply.closed, what);
        const { answers, continues, rest, problem } = readAnswers(Buffer.from(reply.text, 'latin1'));
        assert.equal(problem, undefined, what);
        assert.equal(rest.length, 0, what);
        assert.deepEqual(
          answers.map((answer) => answer.status),
          [...before.map((each) => each.status), status],
          `${what}: ${reply.text}`,
        );
        for (const [index, { contained }] of before.entries())
          assert.ok(answers[index]?.body.includes(contained), `${what}: ${answers[index]?.body} has ${contained}`);
        const expected = before.reduce((sum, each) => sum + (each.continues ?? 0), 0);
        assert.equal(continues, expected, `${what}: the body of a refused request is not asked for`);
        const last = answers.at(-1);
        assert.match(last?.head ?? '', /\r\nconnection: close\r\n/i, what);
        assert.equal(JSON.parse(String(last?.body)).errors[0].status, status, what);
      }
    }
  }));

test('the refusal of a HEAD has no body', () =>
  withHostileServer(async (server) => {
    for (const [header, status] of [
      ['Expect: something', 417],
      [twoHosts, 400],
    ] as const) {
      const { text } = await server.send(lines('HEAD /traits HTTP/1.1', ...kept, header));
      assert.match(text, new RegExp(`^HTTP/1.1 ${status} `));
      assert.ok(text.endsWith('\r\n\r\n'), text);
    }
  }));

test('100 Continue comes behind the answers to earlier requests, and before the body of its own request', (t) =>
  withHostileServer(async (server) => {
    const random = randomFrom(seedFor(t));
    const ids = Array.from({ length: 20 }, () => randomUuid(random));
    const text = ids.map(
      (id) =>
        get(`/resource_providers/${id}`) +
        send('PUT', `/resource_providers/${id}`, '{"name": "a"}', 'Expect: 100-continue'),
    );
    const reply = await server.send([...text, get('/', 'Connection: close')].join(''));
    const statuses = [...reply.text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
    assert.deepEqual(statuses, [...ids.flatMap(() => [404, 100, 404]), 200]);
    const { answers, problem } = readAnswers(Buffer.from(reply.text, 'latin1'));
    assert.equal(problem, undefined);
    for (const [index, id] of ids.entries()) {
      for (const answer of answers.slice(2 * index, 2 * index + 2)) assert.ok(answer.body.includes(id));
    }
  }));

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseGabbit } from './parse.ts';

test('a test has the defaults of its file, combined with its own keys', () => {
  const { fixtures, tests } = parseGabbit(`
    fixtures: [APIFixture]
    defaults:
      request_headers: { accept: application/json, x-auth-token: admin }
      response_strings: [a]
      status: 201
    tests:
      - name: own
        POST: /things
        request_headers: { accept: text/plain }
        response_strings: [b]
        data: { x: 1 }
      - name: bare
        url: /
        status: 200 || 204
  `);
  assert.deepEqual(fixtures, ['APIFixture']);
  const [own, bare] = tests;
  assert.equal(own?.method, 'POST');
  assert.equal(own?.url, '/things');
  assert.equal(own?.status, '201');
  assert.deepEqual(own?.request_headers, { accept: 'text/plain', 'x-auth-token': 'admin' });
  assert.deepEqual(own?.response_strings, ['a', 'b']);
  assert.deepEqual(own?.data, { x: 1 });
  assert.equal(bare?.method, 'GET');
  assert.equal(bare?.status, '200 || 204');
  assert.equal(bare?.data, '');
});

test('YAML is read as version 1.1: yes is true, and the last of two equal keys wins', () => {
  const [only] = parseGabbit('tests: [{ name: a, name: b, GET: /, data: yes, xfail: yes }]').tests;
  assert.equal(only?.name, 'b');
  assert.equal(only?.data, true);
  assert.equal(only?.xfail, true);
});

for (const [what, text, message] of [
  ['without tests', 'defaults: {}', /has the key "tests"/],
  ['that is a list', '[]', /is a mapping/],
  ['with a test that is a text', 'tests: [x]', /A test is a mapping, not "x"/],
  ['with a test without a name', 'tests: [{ GET: / }]', /has no name/],
  ['with a test without a url', 'tests: [{ name: a }]', /test "a" has no url/],
  ['with two methods in a test', 'tests: [{ name: a, GET: /, PUT: / }]', /several methods: GET, PUT/],
  ['with a method in the defaults', 'defaults: { GET: / }\ntests: []', /"GET: url", which belongs to a test/],
  ['with an unknown key', 'tests: [{ name: a, GET: /, response_json_path: {} }]', /unknown keys: response_json_path/],
  [
    'with a list where a mapping belongs',
    'tests: [{ name: a, GET: /, response_headers: [x] }]',
    /is a mapping, not \["x"\]/,
  ],
  ['with a text where a list belongs', 'tests: [{ name: a, GET: /, response_strings: x }]', /is a list, not "x"/],
] as const) {
  test(`a file ${what} is refused`, () => {
    assert.throws(() => parseGabbit(text), message);
  });
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Context, substitute } from './substitute.ts';

const past = (url: string, json: { readonly id: string; readonly n: number }, location: string) => ({
  url,
  response: {
    status: 200,
    headers: { location, 'x-mark': `mark of ${json.id}`, 'set-cookie': 'a=1; path=/, b=2' },
    text: JSON.stringify(json),
    json,
  },
});
const first = past('/first', { id: 'one', n: 1 }, 'http://host/made/one');
const second = past('/second', { id: 'two', n: 2 }, 'http://host/made/two');
const context: Context = {
  scheme: 'http',
  netloc: 'host:80',
  environment: { NAME: 'a.b', NUMBER: '12', FLOAT: '1.5', TRUE: 'True', NULL: 'null', AMPERSAND: '$&' },
  prior: second,
  history: new Map([
    ['the first', first],
    ['the second', second],
  ]),
};

for (const [text, expected] of [
  ['nothing', 'nothing'],
  ['$SCHEME://$NETLOC/x', 'http://host:80/x'],
  ["/things/$ENVIRON['NAME']/x", '/things/a.b/x'],
  ['$ENVIRON["NAME"]', 'a.b'],
  ["$ENVIRON['AMPERSAND']", '$&'],
  ["$ENVIRON['NUMBER']", 12],
  ["$ENVIRON['FLOAT']", 1.5],
  ["$ENVIRON['TRUE']", true],
  ["$ENVIRON['NULL']", null],
  ["$ENVIRON:str['NUMBER']", '12'],
  ["x$ENVIRON['NUMBER']", 'x12'],
  ['$LOCATION/y', 'http://host/made/two/y'],
  ["$HISTORY['the first'].$LOCATION", 'http://host/made/one'],
  ['$LAST_URL/y', '/second/y'],
  ['$URL/y', '/second/y'],
  ["$HISTORY['the first'].$URL", '/first'],
  ["$HEADERS['X-Mark']", 'mark of two'],
  ["$HISTORY['the first'].$HEADERS['x-mark']", 'mark of one'],
  ['$COOKIE', 'a=1,b=2'],
  ["$RESPONSE['$.n']", 2],
  ["$RESPONSE:str['$.n']", '2'],
  ["$RESPONSE['$']", { id: 'two', n: 2 }],
  ["n is $RESPONSE['n'].", 'n is 2.'],
  ["$HISTORY['the first'].$RESPONSE['id'] and $RESPONSE['id']", 'one and two'],
] as const) {
  test(`${text} is replaced`, () => {
    assert.deepEqual(substitute(text, context), expected);
  });
}

test('placeholders are replaced in values of mappings and lists, but not in keys', () => {
  const replaced = substitute({ "$ENVIRON['NAME']": ["$ENVIRON['NAME']", { x: '$SCHEME' }] }, context);
  assert.deepEqual(replaced, { "$ENVIRON['NAME']": ['a.b', { x: 'http' }] });
});

test('in a regular expression the inserted text is escaped', () => {
  assert.equal(substitute("/^$ENVIRON['NAME']$/", context, true), '/^a\\.b$/');
});

for (const [text, message] of [
  ["$ENVIRON['OTHER']", /no OTHER in the environment/],
  ["$RESPONSE['other']", /other is not in/],
  ["$HISTORY['another'].$RESPONSE['id']", /no response of a test "another"/],
  ["$HEADERS['x-other']", /no header x-other/],
  ["$ENVIRON:complex['NUMBER']", /the cast "complex"/],
] as const) {
  test(`${text} cannot be replaced`, () => {
    assert.throws(() => substitute(text, context), message);
  });
}

test('without a prior response there is no value to refer to', () => {
  assert.throws(() => substitute('$LOCATION', { ...context, prior: undefined }), /there is no prior response/);
});

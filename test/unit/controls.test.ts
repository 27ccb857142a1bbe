/** Characters that a terminal obeys, or that change the direction of text, in texts of others. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { escapeControls, escapeControlsInJson, escapeControlsInLines } from '../../src/text/print.ts';
import { harmful, hasHarmful } from '../support/harmful_characters.ts';

test('each of them is escaped, in a part of a line and in lines', () => {
  for (const character of harmful) {
    for (const escaping of [escapeControls, escapeControlsInLines]) {
      const text = `a${character}b${character}`;
      const escaped = escaping(text);
      assert.ok(!hasHarmful(escaped), JSON.stringify(character));
      assert.match(escaped, /^a(\\u\{[0-9a-f]+\}|\\[rt])b\1$/);
    }
  }
  assert.equal(escapeControls('a\nb'), 'a\\nb');
  assert.equal(escapeControlsInLines('a\nb'), 'a\nb');
});

test('all other characters stay as they are', () => {
  for (const text of ['', 'plain', '計算機 é ß 😀 "quoted" \\u{1b}', '\u00a0', 'שלום']) {
    for (const escaping of [escapeControls, escapeControlsInLines]) assert.equal(escaping(text), text);
    assert.equal(escapeControlsInJson(JSON.stringify(text)), JSON.stringify(text));
  }
});

test('JSON has no control characters, and is parsed to the same value', () => {
  const value = { [harmful.join('')]: [harmful.join(' '), '計算機 😀'], line: 'a\nb' };
  for (const json of [JSON.stringify(value), JSON.stringify(value, null, 2)]) {
    const escaped = escapeControlsInJson(json);
    assert.ok(!hasHarmful(escaped));
    assert.deepEqual(JSON.parse(escaped), value);
  }
});

test('commands print by the functions that escape them', () => {
  const source = path.join(import.meta.dirname, '..', '..', 'src');
  // The first must be read by any Node.js; the other one prints text that it has escaped, without a line feed.
  const allowed = ['text/print.ts', 'start/node_version.ts', 'bin/serve_placement_api.ts'];
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  for (const file of files.filter((each) => !allowed.includes(each))) {
    const text = readFileSync(path.join(source, file), 'utf8').replaceAll(/^\s*(\/\/|\/?\*).*$/gm, '');
    assert.doesNotMatch(text, /console\.(log|error|warn|info)\b|std(out|err)\.write/, file);
  }
});

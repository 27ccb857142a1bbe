/** Long JSON texts are parsed in pieces, by the rules of JSON.parse. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { inPieces, openTurns } from '../../src/request/turns.ts';
import { type LongJson, parseLongJson, parseUniqueKeys } from '../../src/rest/long_bodies.ts';

const parse = async (text: string, longFrom?: number): Promise<LongJson> =>
  inPieces(parseLongJson(text, longFrom === undefined ? {} : { longFrom }), openTurns());

suite('a long JSON text', () => {
  test('a long body has the value that JSON.parse returns, or is refused if JSON.parse refuses it', () =>
    fc.assert(
      fc.asyncProperty(
        fc.jsonValue({ maxDepth: 5, noUnicodeString: false }),
        fc.nat(3),
        fc.option(fc.tuple(fc.nat(), fc.constantFrom(...'[]{},:"\\ \n0e.-tn\u0001'.split(''), '')), { nil: undefined }),
        async (value, indent, mutation) => {
          let text = JSON.stringify(value, undefined, indent);
          if (mutation !== undefined) {
            const [at, by] = mutation;
            const index = at % (text.length + 1);
            text = text.slice(0, index) + by + text.slice(index + 1);
          }
          let expected: unknown;
          try {
            expected = JSON.parse(text);
          } catch {
            await assert.rejects(parse(text), /unexpected (character|end of the body)/, text);
            return;
          }
          assert.deepEqual((await parse(text)).value, expected);
        },
      ),
      { numRuns: 3000 },
    ));

  test('a long body may have repeated keys, and keys that JavaScript objects have already', async () => {
    const text = '{"b": 1, "__proto__": {"x": 1}, "a": 2, "constructor": 3, "b": 4, "1": 5, "\\u0061": 6}';
    const { value } = await parse(text);
    assert.equal(JSON.stringify(value), JSON.stringify(JSON.parse(text)));
    assert.ok(Object.hasOwn(Object(value), '__proto__'));
  });

  test('on request a repeated key is a mistake, at any depth, and the same key in several objects is none', async () => {
    const unique = async (text: string) => inPieces(parseLongJson(text, { uniqueKeys: true }), openTurns());
    const { value } = await unique(
      '{"a": {"a": [{"a": 1}, {"a": 2}]}, "b": {"a": 3, "constructor": 4, "__proto__": 5}}',
    );
    assert.deepEqual(Object.keys(Object(value)), ['a', 'b']);
    await assert.rejects(
      unique('{"b": {"a": [{"x": {}, "a": 1, "\\u0061": 2}]}}'),
      /^Error: "a" stands twice in the same object\.$/,
    );
    await assert.rejects(unique('{"__proto__": 1, "__proto__": 2}'), /"__proto__" stands twice/);
  });

  test('a short text is refused for a repeated key alone', () => {
    for (const right of [
      '{"a": {"a": 1}, "b": [{"a": "\\":\\" :"}]}',
      '5',
      '[]',
      '{"a" : "b\\\\"}',
      '{"__proto__": 1}',
    ])
      assert.deepEqual(parseUniqueKeys(right), JSON.parse(right));
    for (const wrong of [
      '{"a": 1, "a": 1}',
      '[{"b": {"x": "\\":", "\\u0078"\n: 2}}]',
      '{"__proto__": 1, "__proto__": 2}',
    ])
      assert.throws(() => parseUniqueKeys(wrong), /^Error: "(a|x|__proto__)" stands twice in the same object\.$/);
    assert.throws(() => parseUniqueKeys('{"a": 1'), SyntaxError);
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    assert.deepEqual(parseUniqueKeys(nested(100)), JSON.parse(nested(100)));
    for (const levels of [101, 20_000])
      assert.throws(() => parseUniqueKeys(nested(levels)), /^Error: the body is nested deeper than 100 levels\.$/);
  });

  test('the parser reports which objects and arrays have many values, at any depth', async () => {
    const { value, long } = await parse('{"short": [1, 2], "long": {"in": [1, 2, 3]}, "last": 1}', 4);
    const names = (found: unknown): readonly string[] =>
      typeof found !== 'object' || found === null
        ? []
        : Object.entries(found).flatMap(([name, each]) => [...(long.has(each) ? [name] : []), ...names(each)]);
    assert.ok(long.has(value));
    assert.deepEqual(names(value), ['long']);
  });

  test('a body is refused if it is nested deep, or has very many values or members', async () => {
    const members = (count: number): string => `{${Array.from({ length: count }, (_, n) => `"${n}":0`).join(',')}}`;
    await parse('['.repeat(100) + ']'.repeat(100));
    await parse(members(100_000));
    await assert.rejects(parse('['.repeat(101) + ']'.repeat(101)), /nested deeper than 100 levels/);
    await assert.rejects(parse('['.repeat(5_000_000)), /nested deeper than 100 levels/);
    await assert.rejects(parse(`[${'0,'.repeat(1_000_000)}0]`), /more than 1000000 values/);
    await assert.rejects(parse(members(100_001)), /more than 100000 members/);
  });

  test('parsing takes time in proportion to the length', async () => {
    const length = 4_000_000;
    const startedUs = process.cpuUsage();
    for (const text of [
      `"${'\\n'.repeat(length / 2)}"`,
      `["${'\\"'.repeat(length / 2)}"]`,
      `[${'"a",'.repeat(length / 4)}""]`,
      `"${'\\\\'.repeat(length / 2)}"`,
      ' '.repeat(length),
      `${'9'.repeat(length)}`,
    ]) {
      await parse(text).catch(() => {});
    }
    const { user } = process.cpuUsage(startedUs);
    // In proportion it takes a second or so; by the square, hours.
    assert.ok(user < 60e6, `${user / 1e6} s`);
  });
});

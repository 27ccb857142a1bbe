import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { ConfigError } from '../../../src/config/config.ts';
import { parseOsloIni } from '../../../src/config/oslo_ini.ts';
import { strip } from '../../../src/text/strings.ts';

const parse = (text: string): unknown =>
  Object.fromEntries(
    [...parseOsloIni(text, 'f')].map(([section, options]) => [
      section,
      Object.fromEntries([...options].map(([name, values]) => [name, values.map(({ value }) => value)])),
    ]),
  );

// The results of oslo.config 9.0.
const grammar: readonly (readonly [what: string, text: string, meaning: unknown])[] = [
  ['nothing', '', {}],
  ['the first separator counts, equals', '[a]\nk = x:y=z', { a: { k: ['x:y=z'] } }],
  ['the first separator counts, colon', '[a]\nk: x=y', { a: { k: ['x=y'] } }],
  ['no blanks needed', '[a]\nk=v', { a: { k: ['v'] } }],
  ['an empty value', '[a]\nk =', { a: { k: [''] } }],
  ['double quotes', '[a]\nk = " v "', { a: { k: [' v '] } }],
  ['single quotes', "[a]\nk = 'v'", { a: { k: ['v'] } }],
  ['quotes that do not match', '[a]\nk = "v\'', { a: { k: ['"v\''] } }],
  ['only one pair of quotes', '[a]\nk = ""v""', { a: { k: ['"v"'] } }],
  ['a lone quote', '[a]\nk = "', { a: { k: [''] } }],
  ['no comment after a value', '[a]\nk = v # w ; x', { a: { k: ['v # w ; x'] } }],
  ['comments', '# x\n; y\n[a]\n#k = v\nj = 1', { a: { j: ['1'] } }],
  ['a comment-like continuation', '[a]\nk = v\n  # w', { a: { k: ['v\n# w'] } }],
  ['continuations', '[a]\nk = v\n  w\n\tx  \nj = 1', { a: { k: ['v\nw\nx'], j: ['1'] } }],
  ['a continuation of nothing', '[a]\nk =\n  v', { a: { k: ['\nv'] } }],
  ['quotes on the first line only', '[a]\nk = "v"\n  "w"', { a: { k: ['v\n"w"'] } }],
  ['repeated options', '[a]\nk = 1\nj = x\nk = 2', { a: { k: ['1', '2'], j: ['x'] } }],
  ['a section in two parts', '[a]\nk = 1\n[b]\n[a]\nk = 2', { a: { k: ['1', '2'] }, b: {} }],
  ['sections in any case', '[Api]\nk = 1\n[API]\nk = 2', { api: { k: ['1', '2'] } }],
  ['but DEFAULT', '[DEFAULT]\nk = 1\n[default]\nk = 2', { DEFAULT: { k: ['1'] }, default: { k: ['2'] } }],
  ['options keep their case', '[a]\nKey = 1', { a: { Key: ['1'] } }],
  ['a section with anything in it', '[cors.a b]]\nk = 1', { 'cors.a b]': { k: ['1'] } }],
  ['CRLF and CR', '[a]\r\nk = v\r\rj = w\r\n', { a: { k: ['v'], j: ['w'] } }],
  ['other white space', '[a]\nk\u00a0=\u2003v\u3000', { a: { k: ['v'] } }],
  ['a byte order mark', '\uFEFF[a]\nk = v', { a: { k: ['v'] } }],
  ['dollars are for later', '[a]\nk = $x', { a: { k: ['$x'] } }],
];

suite('the grammar of oslo.config', () => {
  for (const [what, text, meaning] of grammar) test(what, () => assert.deepEqual(parse(text), meaning));

  test('each value has its line', () => {
    const values = parseOsloIni('[a]\n\nk = 1\n  2\n# c\nk = 3', 'f').get('a')?.get('k');
    assert.deepEqual(values, [
      { value: '1\n2', line: 3 },
      { value: '3', line: 6 },
    ]);
  });
});

const mistakes: readonly (readonly [what: string, text: string, line: number, says: RegExp])[] = [
  ['no separator', '[a]\nhunter2', 2, /neither "=" nor ":"/],
  ['no option', '[a]\n = v', 2, /starts with white space/],
  ['an empty option', '[a]\n= hunter2', 2, /no option before the separator/],
  ['no section', '# c\nk = hunter2', 2, /k stands before any section\. Write \[DEFAULT\]/],
  ['a section without end', '[a]\nk = v\n[b', 3, /must end with "]"/],
  ['a comment after a section', '[a] # c', 1, /must end with "]", with nothing after it/],
  ['a section without name', '[]', 1, /has no name/],
  ['a continuation after an empty line', '[a]\nk = v\n\n  hunter2', 4, /no value above/],
  ['a continuation after a comment', '[a]\nk = v\n# c\n  hunter2', 4, /no value above/],
  ['an indented comment after a section', '[a]\n  # c', 2, /no value above/],
];

suite('mistakes in the grammar name file and line, and show no value', () => {
  for (const [what, text, line, says] of mistakes) {
    test(what, () => {
      assert.throws(
        () => parseOsloIni(text, '/etc/p.conf'),
        (error) => {
          assert.ok(error instanceof ConfigError);
          assert.ok(error.message.startsWith(`/etc/p.conf:${line}: `), error.message);
          assert.match(error.message, says);
          assert.doesNotMatch(error.message, /hunter2|\n/);
          return true;
        },
      );
    });
  }
});

const word = fc.stringMatching(/^[a-z][a-z0-9_]{0,8}$/);
const inline = fc.string({ unit: 'grapheme' }).map((text) => strip(text.replace(/[\r\n]/g, ' ')));
const value = fc.tuple(
  inline,
  fc.array(
    inline.filter((line) => line !== ''),
    { maxLength: 2 },
  ),
);

test('every value that is written in quotes and indented is read back unchanged', () => {
  const sections = fc.dictionary(word, fc.dictionary(word, fc.array(value, { minLength: 1, maxLength: 3 })));
  fc.assert(
    fc.property(
      sections,
      fc.constantFrom(' = ', '=', ': '),
      fc.constantFrom('\n', '\r\n'),
      (content, separator, newline) => {
        const lines = Object.entries(content).flatMap(([section, options]) => [
          `[${section}]`,
          ...Object.entries(options).flatMap(([name, values]) =>
            values.map(([first, more]) =>
              [`${name}${separator}"${first}"`, ...more.map((line) => `  ${line}`)].join(newline),
            ),
          ),
        ]);
        const expected = Object.entries(content).map(([section, options]) => [
          section,
          Object.fromEntries(
            Object.entries(options).map(([name, values]) => [
              name,
              values.map(([first, more]) => [first, ...more].join('\n')),
            ]),
          ),
        ]);
        assert.deepEqual(parse(lines.join(newline)), Object.fromEntries(expected));
      },
    ),
  );
});

test('any text is parsed, or refused with a ConfigError', () => {
  const piece = fc.oneof(fc.constantFrom('[a]', '\n', '\n ', ' = ', ':', '"', '#', '[', ']', '\t', '\r'), fc.string());
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      try {
        parseOsloIni(pieces.join(''), 'f');
      } catch (error) {
        assert.ok(error instanceof ConfigError);
        assert.match(error.message, /^f:\d+: /);
      }
    }),
  );
});

/** What the runner of all tests says of statements: it compares the columns of their results with their row types. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declaredRows } from './declared_rows.ts';
import { complaintsOf, locationsIn, withLocations } from './recorded.ts';

const field = (name: string, dataTypeID: number) =>
  ({ name, dataTypeID, tableID: 0, columnID: 0, dataTypeSize: 0, dataTypeModifier: 0, format: 'text' }) as const;
const [int4, int8, text, timestamp, json] = [23, 20, 25, 1184, 114];

test('each statement with a row type is found in the source, with its columns', () => {
  const all = declaredRows();
  const sources = all.filter(({ columns }) => columns.size > 0);
  assert.ok(all.length > 80, `${all.length}`);
  assert.deepEqual(
    all.filter(({ columns }) => columns.size === 0).map(({ location }) => location),
    [],
  );
  assert.ok(sources.some(({ columns }) => columns.get('created')?.kind === 'Date'));
});

test('a missing column, a superfluous one, and another type are reported', () => {
  const declared = {
    location: 'a.ts:1',
    columns: new Map([
      ['id', { kind: 'number', isOptional: false }],
      ['name', { kind: 'string', isOptional: false }],
      ['note', { kind: 'string', isOptional: true }],
    ] as const),
  };
  assert.deepEqual(complaintsOf(declared, [field('id', int4), field('name', text)]), []);
  assert.deepEqual(complaintsOf(declared, [field('id', int8), field('label', text)]), [
    'the result has no column name',
    'the row type lacks label',
    'id is declared as number, and is string',
  ]);
  assert.deepEqual(complaintsOf(declared, [field('id', json), field('name', timestamp)]), [
    'name is declared as string, and is Date',
  ]);
});

test('the last location that a text names is that of the statement, unless more text follows', () => {
  const part = 'sql<{ readonly id: number }>`select 1 as id`';
  const marked = withLocations('a.ts', `const x = \n ${part};`);
  assert.equal(marked, `const x = \n ${part.slice(0, -1)} /* row of a.ts:2 */\`;`);
  const nested = withLocations('a.ts', `sql<Row>\`select \${sql<Part>\`1\`}, 2\``);
  assert.equal(nested, `sql<Row>\`select \${sql<Part>\`1 /* row of a.ts:1 */\`}, 2 /* row of a.ts:1 */\``);
  assert.deepEqual(locationsIn('select 1 /* row of a.ts:2 */'), { whole: 'a.ts:2', parts: [] });
  assert.deepEqual(locationsIn('select (1 /* row of a.ts:2 */)'), { whole: undefined, parts: ['a.ts:2'] });
  assert.deepEqual(locationsIn('(1 /* row of a.ts:2 */) /* row of a.ts:1 */'), { whole: 'a.ts:1', parts: ['a.ts:2'] });
});

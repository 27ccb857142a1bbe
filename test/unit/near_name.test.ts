/** Which known name a misspelled one probably means. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { nearName, nearNames } from '../../src/text/strings.ts';

/** The number of letters that are added, removed, replaced or swapped with their neighbour, by recursion. */
function distance(from: string, to: string, replacing: number): number {
  if (from === '' || to === '') return from.length + to.length;
  const [a, b] = [from.slice(1), to.slice(1)];
  return Math.min(
    distance(a, to, replacing) + 1,
    distance(from, b, replacing) + 1,
    distance(a, b, replacing) + (from[0] === to[0] ? 0 : replacing),
    from.length > 1 && from[0] === to[1] && from[1] === to[0]
      ? distance(from.slice(2), to.slice(2), replacing) + 1
      : Number.POSITIVE_INFINITY,
  );
}

test('a name is near if one letter of a short name or two of a long one are wrong', () => {
  const letters = fc.constantFrom('a', 'b', 'c');
  const word = (maxLength: number) => fc.array(letters, { minLength: 1, maxLength }).map((each) => each.join(''));
  let near = 0;
  fc.assert(
    fc.property(word(5), word(5), fc.constantFrom('', 'long:'), (one, other, before) => {
      const [written, known] = [before + one, before + other];
      const forgiven = known.length < 8 ? 1 : 2;
      const isNear = distance(one, other, known.length < 4 ? 2 : 1) <= forgiven;
      near += isNear ? 1 : 0;
      assert.equal(nearName(written, [known]), isNear ? known : undefined, `${written} ${known}`);
    }),
    { numRuns: 3000 },
  );
  assert.ok(near > 300);
});

test('of several names the nearest is meant', () => {
  assert.equal(
    nearName('Placement:trait:lst', ['placement:traits:show', 'placement:traits:list']),
    'placement:traits:list',
  );
  assert.equal(nearName('memory', ['memories', 'memorz', 'MEMORY']), 'MEMORY');
  assert.equal(nearName('x'.repeat(10_000), ['x'.repeat(9999)]), 'x'.repeat(9999));
});

test('several names that are equally near may all be meant', () => {
  assert.equal(nearNames('GPU', ['VCPU', 'VGPU', 'PGPU', 'PCPU']), 'PGPU or VGPU');
  assert.equal(nearNames('pgpu', ['VGPU', 'PGPU']), 'PGPU');
  assert.equal(nearNames('GPUS', ['VCPU']), undefined);
});

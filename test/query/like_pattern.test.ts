import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { likePattern } from '../../src/text/like_pattern.ts';

test('wildcards stand for any text and any character', () => {
  const names = ['h1', 'h10', 'H%', 'abcbd', 'a\nd', '😀x', ''];
  const found = (like: string) => names.filter((name) => likePattern(like).test(name));
  deepEqual(found('h1'), ['h1']);
  deepEqual(found('%h_'), ['h1', 'H%']);
  deepEqual(found('h%1%'), ['h1', 'h10']);
  deepEqual(found('%h%1%0%'), ['h10']);
  deepEqual(found('%\\%%'), ['H%']);
  deepEqual(found('a%b%b%'), ['abcbd']);
  deepEqual(found('a%cb%b%'), []);
  deepEqual(found('%bd'), ['abcbd']);
  deepEqual(found('a%d'), ['abcbd', 'a\nd']);
  deepEqual(found('_x'), ['😀x']);
  deepEqual(found('%%'), names);
});

test('a pattern has the same result as a search at every position', () => {
  const texts = (letters: string, length: number): string[] =>
    length === 0 ? [''] : texts(letters, length - 1).flatMap((text) => [...letters].map((letter) => text + letter));
  const names = [0, 1, 2, 3, 4, 5].flatMap((length) => texts('a1', length));
  for (const like of [1, 2, 3, 4, 5].flatMap((length) => texts('a1%_', length))) {
    const naive = new RegExp(`^${like.replaceAll('%', '.*').replaceAll('_', '.')}$`);
    for (const name of names) equal(likePattern(like).test(name), naive.test(name), `${name} like ${like}`);
  }
});

test('a pattern that is longer than every name matches no name', () => {
  for (const long of ['a'.repeat(100_000), `${'_'.repeat(100_000)}%`, `%${'('.repeat(100_000)}%`]) {
    equal(likePattern(long).test('a'.repeat(255)), false);
  }
});

test('many wildcards do not take long', { timeout: 5_000 }, () => {
  equal(likePattern(`${'%a'.repeat(100)}b`).test('a'.repeat(255)), false);
  equal(likePattern(`%${'%a'.repeat(100)}%`).test('a'.repeat(255)), true);
  equal(likePattern('%a'.repeat(10_000)).test('a'.repeat(255)), false);
});

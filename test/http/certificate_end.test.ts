/** When clients begin to refuse the certificate of `[ssl] cert_file`, which may have others behind it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endOf } from '../../src/http/server/tls_files.ts';
import { type Certificate, issue } from '../keystone/certificate.ts';

const [hour, day] = [3600, 86_400];
/** The tests of other files may run for minutes between this and the tests below. */
const issuedMs = Date.now();
const root = issue({ name: 'root', seconds: 365 * day });
const expiredRoot = issue({ name: 'root', seconds: -day, key: root.key });
const intermediate = (seconds: number, key?: string): Certificate =>
  issue({
    name: 'intermediate',
    seconds,
    issuer: { name: 'root', key: root.key },
    ...(key === undefined ? {} : { key }),
  });
const middle = intermediate(30 * day);
const own = issue({ name: 'own', seconds: 10 * day, issuer: { name: 'intermediate', key: middle.key } });
const byRoot = issue({ name: 'own', seconds: 10 * day, issuer: { name: 'root', key: root.key } });
const signedRoot = issue({ name: 'root', seconds: -day, key: root.key, issuer: { name: 'other', key: middle.key } });
const oneOfTwo = issue({ name: 'one', seconds: 20 * day, key: root.key, issuer: { name: 'two', key: middle.key } });
const twoOfTwo = issue({ name: 'two', seconds: 15 * day, key: middle.key, issuer: { name: 'one', key: root.key } });
const byOneOfTwo = issue({ name: 'own', seconds: 30 * day, issuer: { name: 'one', key: root.key } });

const cases: Readonly<Record<string, readonly [chain: readonly Certificate[], seconds: number]>> = {
  'the certificate itself': [[own, middle], 10 * day],
  'a self-signed one': [[root], 365 * day],
  'an intermediate one that ends earlier': [[own, intermediate(hour, middle.key)], hour],
  'an intermediate one that has ended beside the renewed one': [
    [own, intermediate(-hour, middle.key), middle],
    10 * day,
  ],
  'an intermediate one that ends earlier, behind others': [[own, root, intermediate(hour, middle.key)], hour],
  'a root that has ended, which clients have in another form': [[byRoot, expiredRoot], 10 * day],
  'a root that has ended behind an intermediate one': [[own, middle, expiredRoot], 10 * day],
  'a root beside its other form that another root signed, which has ended': [[byRoot, root, signedRoot], 10 * day],
  'the earliest of two that signed each other': [[byOneOfTwo, twoOfTwo, oneOfTwo], 15 * day],
  'a certificate of another chain': [[own, middle, issue({ name: 'other', seconds: -day })], 10 * day],
};

for (const [what, [chain, seconds]] of Object.entries(cases)) {
  test(`what counts is ${what}`, () => {
    const left = (endOf({ cert: chain.map(({ cert }) => cert).join('') }) - issuedMs) / 1000;
    assert.ok(Math.abs(left - seconds) < 120, `${left}`);
  });
}

/** The log has a warning if the certificate of Keystone is not checked. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openKeystone } from '../../src/access/keystone/authenticate.ts';
import { completeSettings } from './keystones.ts';
import { settingsFor } from './stand_in.ts';

test('insecure = true gives a warning at the start where Keystone is called by https', () => {
  const cases: readonly (readonly [scheme: string, insecure: boolean, warnings: number])[] = [
    ['https', true, 1],
    ['https', false, 0],
    ['http', true, 0],
  ];
  for (const [scheme, insecure, warnings] of cases) {
    const said: string[] = [];
    const say = (...entry: readonly unknown[]) => void said.push(String(entry.at(-1)));
    const settings = completeSettings({ ...settingsFor({ url: `${scheme}://keystone.example.com` }), insecure });
    openKeystone(settings, { info: say, warn: say }).close();
    assert.equal(said.length, warnings, said.join());
    for (const line of said) assert.match(line, /insecure = true .* cafile/);
  }
});

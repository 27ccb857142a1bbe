/** Invalid terms: each is a 400 that names the field and the value, and changes nothing. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

/** Values in JSON, and a part of the error for each. */
const bad: readonly (readonly [value: string, said: string])[] = [
  ['0', '0 is less than the minimum of 1'],
  ['-5', '-5 is less than the minimum of 1'],
  ['1.5', '1.5 is not a whole number of seconds'],
  ['1e-9', '1e-9 is not a whole number of seconds'],
  ['101', "'expires_in' may be up to 100 seconds here ([placement] max_term). Got: 101"],
  ['2147483648', '2147483648 is greater than the maximum of 2147483647'],
  ['1e300', '1e+300 is greater than the maximum of 2147483647'],
  ['"60"', "'60' is not a whole number of seconds"],
  ['"soon"', "'soon' is not a whole number of seconds"],
  ['true', 'true is not a whole number of seconds'],
  ['[60]', '[60] is not a whole number of seconds'],
  ['{}', '{} is not a whole number of seconds'],
];

test('terms out of range or of other types are refused, and nothing is written', async () => {
  await withTestService(anyEngine, { placement: { maxTerm: 100 } }, async (service) => {
    const send = requestsTo(service, 'placement 2.6');
    const [host, known, fresh] = [randomUUID(), randomUUID(), randomUUID()];
    await makeProvider(send, host, { VCPU: { total: 8 } });
    const claim = newClaim({ [host]: { VCPU: 1 } });
    accepted(await send('PUT', `/allocations/${known}`, { ...claim, expires_in: 100 }));
    const end = at((await send('GET', `/consumers/${known}`)).json, 'expires_at');
    const { allocations: _, ...owner } = claim;
    const requests = (value: unknown) =>
      [
        ['PUT', `/allocations/${fresh}`, { ...claim, expires_in: value }],
        ['PUT', `/allocations/${fresh}`, { ...owner, candidates: 'resources=VCPU:1', expires_in: value }],
        ['POST', '/allocations', { [fresh]: { ...claim, expires_in: value } }],
        ['PUT', `/consumers/${known}/term`, { expires_in: value, consumer_generation: 1 }],
      ] as const;
    for (const [text, said] of [...bad, ['null', 'null is not a whole number of seconds'] as const]) {
      for (const [method, path, body] of requests(JSON.parse(text))) {
        if (text === 'null' && path.endsWith('/term')) continue; // there it means no end
        const { status, json } = await send(method, path, body);
        const detail = String(at(json, 'errors', 0, 'detail'));
        assert.equal(status, 400, `${method} ${path} ${text}: ${detail}`);
        assert.ok(detail.includes(said) && detail.includes('expires_in'), `${method} ${path} ${text}: ${detail}`);
      }
    }
    for (const generation of ['1', 1.5, true]) {
      const body = { expires_in: 60, consumer_generation: generation };
      const { status, text } = await send('PUT', `/consumers/${known}/term`, body);
      assert.equal(status, 400);
      assert.match(text, /consumer_generation: .* is not of type 'integer', 'null'/);
    }
    assert.equal((await send('GET', `/consumers/${fresh}`)).status, 404);
    const shown = await send('GET', `/consumers/${known}`);
    assert.deepEqual([at(shown.json, 'consumer_generation'), at(shown.json, 'expires_at')], [1, end]);
  });
});

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { placementService } from '../../src/api/microversions.ts';
import { ApiError } from '../../src/errors.ts';
import { accepts, bestOffer } from '../../src/http/accept.ts';
import { requestedMinor } from '../../src/http/microversion.ts';
import { parseIfMatch } from '../../src/placement/entity_tag.ts';
import acceptTable from './accept.json' with { type: 'json' };
import ifMatchTable from './if_match.json' with { type: 'json' };
import microversionTable from './microversion.json' with { type: 'json' };

/*
 * The tables of Accept and OpenStack-API-Version hold what webob 1.8 and microversion_parse 1.0, which upstream uses, made of
 * these headers. That of If-Match follows RFC 9110 (8.8.3, 13.1.1), but for the missing quotes.
 */

suite('Accept is read as upstream reads it', () => {
  for (const { accept, isJsonAccepted, best } of acceptTable) {
    test(JSON.stringify(accept), () => {
      assert.equal(accepts(accept, 'application/json'), isJsonAccepted);
      assert.equal(bestOffer(accept, ['text/html', 'application/json']) ?? null, best);
    });
  }
});

suite('OpenStack-API-Version is read as upstream reads it', () => {
  for (const { header, result } of microversionTable) {
    test(JSON.stringify(header), () => {
      const minor = () => requestedMinor(placementService, header);
      if (result.minor !== undefined) return assert.equal(minor(), result.minor);
      assert.throws(minor, (error) => {
        assert.ok(error instanceof ApiError);
        assert.deepEqual({ status: error.status, detail: error.message }, result);
        return true;
      });
    });
  }
});

suite('If-Match is read as RFC 9110 says, with quotes or without', () => {
  for (const { header, result } of ifMatchTable) {
    test(JSON.stringify(header), () => assert.deepEqual(parseIfMatch(header) ?? null, result));
  }

  test('in a time that its length says', () => {
    const started = performance.now();
    for (const part of ['"a",', 'a,', ', ', 'a', '"', 'W/']) parseIfMatch(`${part.repeat(16_000)} !`);
    assert.ok(performance.now() - started < 5_000);
  });
});

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { accepts, bestOffer } from '../../src/http/accept.ts';
import { requestedMinor } from '../../src/http/dialect.ts';
import { parseIfMatch } from '../../src/placement/entity_tag.ts';
import { ApiError } from '../../src/request/errors.ts';
import { placementService } from '../../src/rest/microversions.ts';
import acceptTable from './accept.json' with { type: 'json' };
import ifMatchTable from './if_match.json' with { type: 'json' };
import microversionTable from './microversion.json' with { type: 'json' };

/*
 * The tables of Accept and OpenStack-API-Version have the results of webob 1.8 and microversion_parse 1.0, which
 * upstream uses, for these headers. The table of If-Match follows RFC 9110 (8.8.3, 13.1.1), except for missing quotes.
 */

suite('Accept is parsed as upstream does', () => {
  for (const { accept, isJsonAccepted, best } of acceptTable) {
    test(JSON.stringify(accept), () => {
      assert.equal(accepts(accept, 'application/json'), isJsonAccepted);
      assert.equal(bestOffer(accept, ['text/html', 'application/json']) ?? null, best);
    });
  }
});

suite('OpenStack-API-Version is parsed as upstream does', () => {
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

  test('the newest version, and latest', () => {
    const { maxMinor } = placementService;
    assert.equal(requestedMinor(placementService, `placement 1.${maxMinor}`), maxMinor);
    for (const spelling of [`1.+${maxMinor}`, `01.0${maxMinor}`, `+1.${maxMinor}`, 'latest']) {
      assert.equal(requestedMinor(placementService, `placement ${spelling}`), maxMinor, spelling);
    }
    assert.equal(requestedMinor(placementService, null, `1.${maxMinor}`), maxMinor, 'by the older header');
    assert.throws(() => requestedMinor(placementService, `placement 1.${maxMinor + 1}`), /Unacceptable version header/);
  });
});

suite('If-Match is parsed as RFC 9110 says, with quotes or without', () => {
  for (const { header, result } of ifMatchTable) {
    test(JSON.stringify(header), () => assert.deepEqual(parseIfMatch(header) ?? null, result));
  }

  test('takes time in proportion to the length of the header', () => {
    const started = performance.now();
    for (const part of ['"a",', 'a,', ', ', 'a', '"', 'W/']) parseIfMatch(`${part.repeat(16_000)} !`);
    assert.ok(performance.now() - started < 5_000);
  });
});

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { placementService } from '../../src/api/microversions.ts';
import { ApiError } from '../../src/errors.ts';
import { accepts, bestOffer } from '../../src/http/accept.ts';
import { requestedMinor } from '../../src/http/microversion.ts';
import acceptTable from './accept.json' with { type: 'json' };
import microversionTable from './microversion.json' with { type: 'json' };

/*
 * The tables hold what webob 1.8 and microversion_parse 1.0, which upstream uses, made of these headers.
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

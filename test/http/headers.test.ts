import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { accepts, bestOffer } from '../../src/http/accept.ts';
import { requestedVersion } from '../../src/http/dialect.ts';
import { parseIfMatch } from '../../src/placement/entity_tag.ts';
import { placementService } from '../../src/placement/microversions.ts';
import { newestOf, type Service, upTo, versionOf, versionOfText, versionText } from '../../src/placement/versions.ts';
import { ApiError } from '../../src/request/errors.ts';
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

/** OpenStack's versions alone. */
const openstack = upTo(placementService, versionOf(1, 39));

suite('OpenStack-API-Version is parsed as upstream does', () => {
  for (const { header, result } of microversionTable) {
    test(JSON.stringify(header), () => {
      const version = () => requestedVersion(openstack, header) ?? openstack.defaultVersion;
      if (result.minor !== undefined) return assert.equal(version(), versionOf(1, result.minor));
      assert.throws(version, (error) => {
        assert.ok(error instanceof ApiError);
        assert.deepEqual({ status: error.status, detail: error.message }, result);
        return true;
      });
    });
  }

  test('the newest version, and latest', () => {
    for (const spelling of ['1.39', '1.+39', '01.039', '+1.39', 'latest']) {
      assert.equal(requestedVersion(placementService, `placement ${spelling}`), 1039, spelling);
    }
    assert.equal(requestedVersion(placementService, null, '1.39'), 1039, 'by the older header');
    assert.throws(() => requestedVersion(placementService, 'placement 1.40'), /Unacceptable version header: 1\.40/);
  });
});

suite('version 2', () => {
  const newest = newestOf(placementService);

  test('version 2 is requested with the name of the service', () => {
    for (const version of ['2.0', '2.3', versionText(newest)]) {
      for (const header of [`placement ${version}`, `compute 2.1, placement ${version}`, `Placement  ${version}`]) {
        assert.equal(requestedVersion(placementService, header), versionOfText(version), header);
      }
    }
    assert.equal(requestedVersion(placementService, 'compute 2.53'), undefined, 'the version of another service');
  });

  test('version 2 without the name of the service is refused: OpenStack would serve 1.0', () => {
    for (const [header, older] of [
      ['2.6', null],
      ['compute 2.1, 2.6', null],
      [null, '2.6'],
      ['2.999', null],
      ['placement=2.6', null],
      ['Placement: 2.6', null],
      ['compute 2.1, placement/2.6', null],
    ] as const) {
      assert.throws(
        () => requestedVersion(placementService, header, older),
        (error) =>
          error instanceof ApiError &&
          error.status === 400 &&
          /Send "OpenStack-API-Version: placement 2\.\d+"/.test(error.message),
        `${header} ${older}`,
      );
    }
    assert.equal(requestedVersion(placementService, '1.45'), undefined, '1.N alone names no version, as upstream');
    assert.equal(requestedVersion(placementService, 'placement 1.30', '2.6'), 1030, 'the older header does not count');
    assert.equal(requestedVersion(upTo(placementService, 1039), '2.6'), undefined, 'where version 2 is off');
  });

  test('a version above the offered ones is refused with the range of version 2, and a lower one with the range of OpenStack', () => {
    const refusal = (service: Service, version: string) => {
      try {
        return requestedVersion(service, `placement ${version}`);
      } catch (error) {
        return error instanceof ApiError ? [error.status, error.versions?.newest, error.headers.vary] : error;
      }
    };
    const vary = 'openstack-api-version';
    assert.deepEqual(refusal(placementService, '2.999'), [406, newest, vary]);
    assert.deepEqual(refusal(upTo(placementService, 2003), '2.4'), [406, 2003, vary]);
    assert.deepEqual(refusal(placementService, '2.1000'), [406, newest, vary]);
    for (const version of ['3.0', '10.3', '2.-1']) {
      assert.deepEqual(refusal(placementService, version), [406, newest, vary], version);
    }
    for (const version of ['1.40', '1.45', '1.1001', '0.1', '0.1002', '-2.5']) {
      assert.deepEqual(refusal(placementService, version), [406, 1039, undefined], version);
    }
    assert.deepEqual(refusal(upTo(placementService, 1039), '2.3'), [406, 1039, undefined], 'where version 2 is off');
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

/** Numbers in answers are written as Python writes them. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { floatJson, numbersAsWritten, pythonFloat } from '../../src/rest/python_numbers.ts';
import { anyEngine } from '../support/engines.ts';
import { accepted, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

suite('a floating-point number', () => {
  test('has a decimal point or an exponent, as in Python', () => {
    for (const [value, text] of [
      [16, '16.0'],
      [1, '1.0'],
      [0, '0.0'],
      [-0, '-0.0'],
      [1.5, '1.5'],
      [0.1, '0.1'],
      [-2.25, '-2.25'],
      [0.0001, '0.0001'],
      [0.00001, '1e-05'],
      [1.25e-7, '1.25e-07'],
      [123456789, '123456789.0'],
      [1e15, '1000000000000000.0'],
      [9999999999999998, '9999999999999998.0'],
      [1e16, '1e+16'],
      [1.5e16, '1.5e+16'],
      [3.40282e38, '3.40282e+38'],
      [5e-324, '5e-324'],
      [1.7976931348623157e308, '1.7976931348623157e+308'],
    ] as const) {
      assert.equal(pythonFloat(value), text);
      assert.equal(JSON.stringify(floatJson(value)), text);
    }
  });

  test('is the same number when it is read', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const text = pythonFloat(value);
        assert.ok(Object.is(Number(text), value), text);
        assert.match(text, /^-?(\d+\.\d+|\d(\.\d+)?e[-+]\d\d+)$/);
      }),
    );
  });
});

test('numbers of a text keep their kind', () => {
  const text = '{"a":16,"b":16.0,"c":[1.6e1,-0,-0.0,1E2],"d":123456789012345678901234567890,"e":"1.50","f":null}';
  assert.equal(
    JSON.stringify(numbersAsWritten(text)),
    '{"a":16,"b":16.0,"c":[16.0,0,-0.0,100.0],"d":123456789012345678901234567890,"e":"1.50","f":null}',
  );
});

test('inventories are shown with a ratio that has a point, and answered to a write as it was written', () =>
  withTestService(anyEngine, {}, async (service) => {
    const { app } = service;
    const uuid = '00000000-0000-4000-8000-000000000001';
    const path = `/resource_providers/${uuid}/inventories`;
    const send = requestsTo(service);
    accepted(await send('POST', '/resource_providers', { name: 'a', uuid }));
    const headers = {
      'x-auth-token': 'admin',
      'openstack-api-version': 'placement 1.39',
      'content-type': 'application/json',
    };
    const write = async (method: string, to: string, body: string): Promise<string> => {
      const answer = await app.request(to, { method, headers, body });
      assert.ok(answer.ok, await answer.clone().text());
      return answer.text();
    };
    const rest = '"max_unit":2147483647,"step_size":1';
    // As Nova and osc-placement write it.
    assert.equal(
      await write(
        'PUT',
        path,
        '{"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8, "allocation_ratio": 16.0}, "DISK_GB": {"total": 9}}}',
      ),
      `{"resource_provider_generation":1,"inventories":{"VCPU":{"total":8,"reserved":0,"min_unit":1,${rest},"allocation_ratio":16.0},` +
        `"DISK_GB":{"total":9,"reserved":0,"min_unit":1,${rest},"allocation_ratio":1.0}}}`,
    );
    assert.equal(
      await write(
        'PUT',
        path,
        '{"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 8.0, "allocation_ratio": 4}}}',
      ),
      `{"resource_provider_generation":2,"inventories":{"VCPU":{"total":8.0,"reserved":0,"min_unit":1,${rest},"allocation_ratio":4}}}`,
    );
    const shown = `"total":8,"reserved":0,"min_unit":1,${rest},"allocation_ratio":4.0`;
    assert.equal((await send('GET', `${path}/VCPU`)).text, `{${shown},"resource_provider_generation":2}`);
    assert.equal(
      (await send('GET', path)).text,
      `{"resource_provider_generation":2,"inventories":{"VCPU":{${shown}}}}`,
    );
    assert.match(
      (await send('GET', '/provider_summaries', undefined, 'placement 2.2')).text,
      /"allocation_ratio":4\.0/,
    );
    assert.equal(
      await write(
        'PUT',
        `${path}/VCPU`,
        '{"resource_provider_generation": 2, "total": 8, "\\u0061llocation_ratio": 1e1}',
      ),
      `{"total":8,"reserved":0,"min_unit":1,${rest},"allocation_ratio":10.0,"resource_provider_generation":3}`,
    );
    assert.equal(
      await write(
        'POST',
        path,
        '{"resource_class": "MEMORY_MB", "total": 5, "min_unit": 1.0, "allocation_ratio" : 2\n}',
      ),
      `{"total":5,"reserved":0,"min_unit":1.0,${rest},"allocation_ratio":2,"resource_provider_generation":4}`,
    );
  }));

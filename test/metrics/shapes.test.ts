import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseShapes } from '../../src/candidates/shapes.ts';
import { makeProvider, newClaim, requestsTo } from '../requests.ts';
import { withTestService } from '../services.ts';

const host = '8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11';

suite('shapes', () => {
  test('/metrics has the count of each shape that fits beside the present usage', async () => {
    const shapes = 'small: resources=VCPU:2 ; none: resources=VCPU:1&required=CUSTOM_LATER';
    await withTestService('embedded', { metrics: { shapes } }, async (service) => {
      const send = requestsTo(service);
      const lines = async () =>
        (await send('GET', '/metrics')).text.split('\n').filter((line) => line.startsWith('placement_shape_capacity'));
      await makeProvider(send, host, { VCPU: { total: 8 } });
      assert.deepEqual(await lines(), [
        'placement_shape_capacity{shape="small"} 4',
        'placement_shape_capacity{shape="none"} 0',
      ]);
      await send('PUT', '/allocations/1b1d3c4e-1111-4222-8333-444455556666', newClaim({ [host]: { VCPU: 3 } }));
      assert.equal((await lines())[0], 'placement_shape_capacity{shape="small"} 2');
    });
  });

  test('the error for an invalid shape names the shape', () => {
    for (const [text, problem] of [
      [
        'small: resources=VCPU:2; big: resources=VCPU:many',
        /^the shape "big": Requested resource VCPU expected positive/,
      ],
      ['a: resources=VCPU:1; a: resources=VCPU:2', /^the shape "a": there are two of this name$/],
      ['resources=VCPU:1', /must be a name/],
      ['small: resources=VCPU:1&limit=5', /^the shape "small": has a limit/],
      ['small: colour=red', /^the shape "small": .*'colour'/],
    ] as const) {
      assert.throws(() => parseShapes(text), { message: problem }, text);
    }
    assert.deepEqual(parseShapes(' ; '), []);
  });
});

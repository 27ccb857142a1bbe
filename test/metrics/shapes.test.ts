import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseShapes } from '../../src/api/candidates/shapes.ts';
import { shapeCapacityText } from '../../src/metrics/capacity.ts';
import { atIntervals } from '../../src/metrics/gathering.ts';
import type { ApiError } from '../../src/request/errors.ts';
import { nodeAt, rowsOf, stockOf } from '../candidates/topology.ts';
import { createFleet } from '../fleet/made_up_fleet.ts';
import { anyEngine } from '../support/engines.ts';
import { makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const host = '8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11';

suite('shapes', () => {
  test('/metrics has the count of each shape that fits beside the present usage', async () => {
    const shapes = 'small: resources=VCPU:2 ; none: resources=VCPU:1&required=CUSTOM_LATER';
    await withTestService(anyEngine, { metrics: { shapes, shapesInterval: 0 } }, async (service) => {
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

  test('a shape that cannot be counted is left out, and the other shapes are in /metrics', async (t) => {
    // Each turn is over at once.
    let nowMs = 1_000_000;
    t.mock.method(performance, 'now', () => {
      nowMs += 20;
      return nowMs;
    });
    const rows = rowsOf(Array.from({ length: 3_000 }, (_, index) => nodeAt(index, { stock: { VCPU: stockOf(8) } })));
    const living = createFleet(rows);
    const shapes = parseShapes('small: resources=VCPU:2; lost: resources=VCPU:1; large: resources=VCPU:8');
    const leftOut: string[] = [];
    let holds = 0;
    const options = {
      hold: (giveUp: () => void) => {
        holds += 1;
        if (holds === 2) giveUp();
        return living.hold(giveUp);
      },
      leftOut: (shape: string, { status, message }: ApiError) => leftOut.push(`${shape} ${status} ${message}`),
    };
    const text = await shapeCapacityText(living.fleet, shapes, options);
    assert.deepEqual(text.split('\n').slice(2), [
      'placement_shape_capacity{shape="small"} 12000',
      'placement_shape_capacity{shape="large"} 3000',
      '',
    ]);
    assert.equal(leftOut.length, 1);
    assert.match(String(leftOut), /^lost 503 /);
  });

  test('a shape is counted once in an interval, however often /metrics is read', async () => {
    const metrics = { shapes: 'small: resources=VCPU:2', shapesInterval: 3600 };
    await withTestService(anyEngine, { metrics }, async (service) => {
      const send = requestsTo(service);
      const counted = async () =>
        /^placement_shape_capacity\{shape="small"\} (\d+)$/m.exec((await send('GET', '/metrics')).text)?.[1];
      await makeProvider(send, host, { VCPU: { total: 8 } });
      assert.equal(await counted(), '4');
      await send('PUT', '/allocations/1b1d3c4e-1111-4222-8333-444455556666', newClaim({ [host]: { VCPU: 3 } }));
      assert.equal(await counted(), '4');
      assert.match((await send('GET', '/metrics')).text, /^openstack_placement_resource_used\{.*\} 3$/m);
    });
  });

  test('what is made at intervals is shared while it is made, and made again at once if it failed', async () => {
    let made = 0;
    const waiting: { resolve: (value: number) => void; reject: (error: Error) => void }[] = [];
    const now = atIntervals(3_600_000, () => {
      made += 1;
      return new Promise<number>((resolve, reject) => waiting.push({ resolve, reject }));
    });
    const failing = [now(), now()];
    waiting[0]?.reject(new Error('no database'));
    for (const each of failing) await assert.rejects(each, /no database/);
    assert.equal(made, 1);
    const working = [now(), now()];
    waiting[1]?.resolve(7);
    assert.deepEqual(await Promise.all([...working, now()]), [7, 7, 7]);
    assert.equal(made, 2);
  });

  test('the error for an invalid shape names the shape', () => {
    for (const [text, problem] of [
      [
        'small: resources=VCPU:2; big: resources=VCPU:many',
        /^the shape "big": .*'resources': Requested resource VCPU expected positive/,
      ],
      ['a: resources=VCPU:1; a: resources=VCPU:2', /^the shape "a": there are two of this name$/],
      ['resources=VCPU:1', /must be a name/],
      ['small: resources=VCPU:1&limit=5', /^the shape "small": has a limit/],
      [
        'small: resources=VCPU:1&apart_from=x',
        /^the shape "small": .*'apart_from' is unknown. Known are group_policy, /,
      ],
      ['small: colour=red', /^the shape "small": .*'colour'/],
    ] as const) {
      assert.throws(() => parseShapes(text), { message: problem }, text);
    }
    assert.deepEqual(parseShapes(' ; '), []);
  });
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

test('from 2.2 on the error for a violated schema is a sentence; below 2.2 it has the words of OpenStack', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, 'placement 2.2');
    const host = randomUUID();
    await makeProvider(send, host, {});
    const claim = { ...newClaim({ [randomUUID()]: { VCPU: 1 } }), consumer_type: 'ci-job' };
    const { consumer_type: _type, ...untyped } = claim;
    const cases: readonly (readonly [method: 'GET' | 'PUT', path: string, body: object | undefined, says: string])[] = [
      [
        'GET',
        '/resource_providers?nmae=x',
        undefined,
        "Invalid query string parameters: 'nmae' is unknown. Did you mean 'name'? Known are in_tree, member_of, name, required, resources, uuid.",
      ],
      [
        'GET',
        '/allocation_candidates?resources=VCPU:1&limt=1',
        undefined,
        "Invalid query string parameters: 'limt' is unknown. Did you mean 'limit'? Known are group_policy, in_tree, limit, member_of, " +
          'required, resources, root_required, same_subtree.',
      ],
      [
        'GET',
        '/consumers?colour=red',
        undefined,
        "Invalid query string parameters: 'colour' is unknown. Known are consumer_type, in_tree, limit, marker, project_id, resource_provider, user_id.",
      ],
      [
        'GET',
        '/consumers?project=red',
        undefined,
        "Invalid query string parameters: 'project' is unknown. Did you mean 'project_id'? Known are consumer_type, in_tree, limit, marker, project_id, resource_provider, user_id.",
      ],
      [
        'GET',
        '/consumers?consumer_type=',
        undefined,
        "Invalid query string parameters: consumer_type: '' is empty: it must have capital letters, digits and _.",
      ],
      [
        'PUT',
        `/allocations/${randomUUID()}`,
        claim,
        "JSON does not validate: consumer_type: 'ci-job' has more than capital letters, digits and _.",
      ],
      [
        'PUT',
        `/allocations/${randomUUID()}`,
        untyped,
        "JSON does not validate: 'consumer_type' is a required property.",
      ],
      [
        'PUT',
        `/resource_providers/${host}/inventories`,
        { resource_provider_generation: 0, inventories: { vcpu: { total: 1 } } },
        "JSON does not validate: inventories: 'vcpu' is no name, which has capital letters, digits and _ only.",
      ],
    ];
    for (const [method, path, body, says] of cases) {
      const detailOf = async (version: string) => {
        const { status, json } = await send(method, path, body, version);
        assert.equal(status, 400, path);
        return (json as { errors: [{ detail: string }] }).errors[0].detail; // every 400 has this form
      };
      const detail = await detailOf('placement 2.2');
      assert.ok(detail.trim().endsWith(says), detail);
      if (!path.startsWith('/consumers'))
        assert.match(await detailOf('placement 1.39'), /Failed validating '\w+' in schema/);
    }
  });
});

test('an unknown class or trait is answered with what may be meant, in version 2', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, 'placement 2.9');
    const host = randomUUID();
    await makeProvider(send, host, { PGPU: { total: 8 } });
    const owner = { project_id: 'ci', user_id: 'ada', consumer_generation: null, consumer_type: 'JOB' };
    const place = (candidates: string) => ['PUT', `/allocations/${randomUUID()}`, { ...owner, candidates }] as const;
    const inventory = (name: string) => ({ resource_provider_generation: 1, inventories: { [name]: { total: 8 } } });
    const meant = / No such resource class GPU\. Did you mean PGPU or VGPU\?/;
    const cases: readonly (readonly [method: string, path: string, body: unknown, says: RegExp])[] = [
      [...place('resources=GPU:1'), meant],
      [...place('resources=PGPU:1&order=free:GPU'), meant],
      [
        ...place('resources=PGPU:1&required=HW_CPU_X86_AVX3'),
        /No such trait\(s\): HW_CPU_X86_AVX3\. Did you mean HW_CPU_X86_AVX/,
      ],
      ['GET', '/allocation_candidates?resources=GPU:1', undefined, meant],
      ['GET', '/resource_providers?resources=GPU:1', undefined, meant],
      ['GET', '/holdings?resource_class=GPU', undefined, meant],
      ['GET', '/changes?resource_class=GPU', undefined, meant],
      ['PUT', '/limits/ci', { resources: { GPU: 1 }, generation: null }, meant],
      ['PUT', `/resource_providers/${host}/inventories`, inventory('GPU'), meant],
    ];
    for (const [method, path, body, says] of cases) {
      const { status, text } = await send(method, path, body);
      assert.equal(status, 400, path);
      assert.match(text, says);
    }
    for (const [method, path, body] of [
      ['GET', '/allocation_candidates?resources=GPU:1', undefined],
      ['PUT', `/resource_providers/${host}/inventories`, inventory('GPU')],
    ] as const) {
      const { text } = await send(method, path, body, 'placement 1.39');
      assert.match(text, /No such resource class GPU\./);
      assert.doesNotMatch(text, /Did you mean/);
    }
  });
});

test('a trait with a wrong name is refused with the name in version 2', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, 'placement 2.9');
    for (const [method, path, value] of [
      ['PUT', '/traits/gpu', 'gpu'],
      ['GET', '/traits?associated=yes', 'yes'],
    ] as const) {
      const { status, text } = await send(method, path);
      assert.equal(status, 400);
      assert.ok(text.includes(`. Got: ${value}"`), text);
      assert.ok(!(await send(method, path, undefined, 'placement 1.39')).text.includes('Got:'));
    }
  });
});

test('the name of a consumer or of a line is refused in words, with its limits', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, 'placement 2.9');
    const claim = { ...newClaim({ [randomUUID()]: { VCPU: 1 } }), consumer_type: 'JOB' };
    const detailOf = async (more: object) => {
      const { status, text } = await send('PUT', `/allocations/${randomUUID()}`, { ...claim, ...more });
      assert.equal(status, 400);
      return text;
    };
    const control = /name: 'a\\\\nb' has a character of control, such as the end of a line, or one that/;
    assert.match(await detailOf({ name: 'a\nb' }), control);
    assert.match(await detailOf({ name: '' }), /name: '' is too short: it must have 1 or more\./);
    assert.match(await detailOf({ name: 'x'.repeat(256) }), /name: 'x+' is too long: it may have 255 characters\./);
    assert.match(await detailOf({ line: 'x'.repeat(65) }), /line: 'x+' is too long: it may have 64 characters\./);
  });
});

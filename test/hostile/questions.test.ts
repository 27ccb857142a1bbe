/** What is wrong with a request about consumers, summaries, explanations and counts is a 4xx that names it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const [host, consumer, other] = [randomUUID(), randomUUID(), randomUUID()];
const long = 'A'.repeat(5000);

/** A parameter and its value, as they are written, and a part of the value that the answer names. */
type Wrong = readonly [query: string, named?: string];

const ofPages = (maximum: number): readonly Wrong[] => [
  ...['0', '-1', `${maximum + 1}`, '1e3', '99999999999999999999', ''].map((value): Wrong => [`limit=${value}`, value]),
  ['limit=1&limit=2', '1, 2'],
  ['marker=x', 'x'],
  ['marker='],
  ['marker=%00', '%00'],
  ['marker=%FF', '%FF'],
  ['colour=red', 'colour'],
];

const ofConsumers: readonly Wrong[] = [
  ...ofPages(1000),
  ...['', '%00', '%FF', 'p'.repeat(256)].map((value): Wrong => [`project_id=${value}`, value]),
  ['user_id='],
  ['project_id=a&project_id=b', 'a, b'],
  ...['', 'small', long].map((value): Wrong => [`consumer_type=${value}`, value]),
  ...['', 'x', other, '%00', long].flatMap((value): Wrong[] => [
    [`resource_provider=${value}`, value],
    [`in_tree=${value}`, value],
  ]),
];

const ofSummaries: readonly Wrong[] = [
  ...ofPages(10_000),
  ...['', 'x', 'in:', 'in:x,y'].map((value): Wrong => [`uuid=${value}`, value.replace(/^in:|,.*$/g, '')]),
  [`uuid=${host}&uuid=${other}`, other],
  ...['x', other].map((value): Wrong => [`in_tree=${value}`, value]),
  ...['x', 'in:', '!in:x'].map((value): Wrong => [`member_of=${value}`, value.replace(/^!?in:/, '')]),
  ...['NONE_SUCH', '!NONE_SUCH', 'in:NONE_SUCH,HW_CPU_X86_AVX2'].map(
    (value): Wrong => [`required=${value}`, 'NONE_SUCH'],
  ),
  ['required='],
];

const query = 'resources=VCPU:1';
const ofQueries: readonly Wrong[] = [
  ['', 'resources'],
  ['colour=red', 'colour'],
  [`${query}&limit=7`, '7'],
  ...['VCPU:0', 'VCPU:-7', 'VCPU:1.5', 'VCPU:one', 'VCPU', 'NONE_SUCH:1'].map(
    (value): Wrong => [`resources=${value}`, value.split(':')[value.startsWith('NONE') ? 0 : 1] ?? value],
  ),
  [`resources=${long}:1`, long],
  ['resources=VCPU:1%00', '%00'],
  ['resources=%FF:1', '%FF'],
  ['resources%00=VCPU:1', '%00'],
  [`${query}&required=NONE_SUCH`, 'NONE_SUCH'],
  [`${query}&root_required=!NONE_SUCH`, 'NONE_SUCH'],
  [`${query}&member_of=x`, 'x'],
  [`${query}&in_tree=x`, 'x'],
  [`${query}&group_policy=perhaps`, 'perhaps'],
  [`${query}&same_subtree=_A`, '_A'],
  ['resources1=VCPU:1&resources2=VCPU:1', 'group_policy'],
];

const ofExplanation: readonly Wrong[] = [
  ...['-1', '1001', 'x', ''].map((value): Wrong => [`${query}&nearest=${value}`, value]),
  [`${query}&nearest=1&nearest=2`, '1, 2'],
  ...['', 'x', '%00', other].map((value): Wrong => [`${query}&tree=${value}`, value]),
  [`${query}&tree=${host}&tree=${host}`, host],
  [`${query}&max=1`, 'max'],
];

const ofCount: readonly Wrong[] = [
  ...['0', '-1', 'x', '', '99999999999999999999'].map((value): Wrong => [`${query}&max=${value}`, value]),
  ...['-1', 'x', '10001'].map((value): Wrong => [`${query}&top=${value}`, value]),
  [`${query}&max=1&max=2`, '1, 2'],
  [`${query}&nearest=1`, 'nearest'],
];

const wrongQueries: Readonly<Record<string, readonly Wrong[]>> = {
  '/consumers': ofConsumers,
  [`/consumers/${consumer}`]: [['colour=red', 'colour']],
  '/provider_summaries': ofSummaries,
  '/allocation_candidates/explanation': [...ofQueries, ...ofExplanation],
  '/allocation_candidates/count': [...ofQueries, ...ofCount],
};

const owner = { project_id: 'p', user_id: 'u', consumer_type: 'INSTANCE', consumer_generation: 1 };
const wrongOwners: readonly (readonly [body: unknown, named: string])[] = [
  ...['project_id', 'user_id'].flatMap((name): [unknown, string][] =>
    ['', 5, null, 'p'.repeat(256), 'a\0', '\ud800', undefined].map((value) => [{ ...owner, [name]: value }, name]),
  ),
  ...['small', 'A'.repeat(256), null, 'A\0', undefined].map((value): [unknown, string] => [
    { ...owner, consumer_type: value },
    'consumer_type',
  ]),
  ...['x', 1.5, true, undefined].map((value): [unknown, string] => [
    { ...owner, consumer_generation: value },
    'consumer_generation',
  ]),
  ...[-1, 2, 2 ** 31, 1e30].map((value): [unknown, string] => [{ ...owner, consumer_generation: value }, `${value}`]),
  [{ ...owner, uuid: other }, other],
  [{ ...owner, allocations: {} }, 'allocations'],
  [{ ...owner, etag: 5 }, 'etag'],
  [null, 'object'],
  [[owner], 'object'],
];

test('wrong input is refused by its name, and changes nothing', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, 'placement 2.3');
    await makeProvider(send, host, { VCPU: { total: 8 } });
    accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 1 } })));
    const before = accepted(await send('GET', `/consumers/${consumer}`)).text;
    const refuse = async (method: string, path: string, body: unknown, named: string) => {
      const { status, json } = await send(method, path, body);
      const what = `${method} ${path.slice(0, 200)} ${JSON.stringify(body) ?? ''}`;
      assert.ok(status === 400 || status === 404 || status === 409, `${what}: ${status}`);
      const detail = String(at(json, 'errors', 0, 'detail'));
      // Of a long value the beginning is shown.
      assert.ok(
        detail.includes(named.slice(0, 500)),
        `${what}: ${named.slice(0, 50)} is not in ${detail.replaceAll(/A{9,}/g, 'A...A')}`,
      );
    };
    for (const [path, wrong] of Object.entries(wrongQueries)) {
      for (const [text, named = ''] of wrong) {
        await refuse('GET', `${path}?${text}`, undefined, named);
        const parameter = /([a-z_]+)=[^&]*$/.exec(text)?.[1] ?? '';
        // The reader of the query string, and the rules between parameters, know no single one.
        const isOfOne = !/%00|%FF|colour|resources1/.test(text);
        if (isOfOne) await refuse('GET', `${path}?${text}`, undefined, parameter === 'resources' ? '' : parameter);
      }
    }
    for (const [body, named] of wrongOwners) await refuse('PUT', `/consumers/${consumer}`, body, named);
    await refuse('PUT', `/consumers/${consumer}?colour=red`, owner, 'colour');
    for (const uuid of ['x', '%FF', other]) {
      await refuse('GET', `/consumers/${uuid}`, undefined, uuid);
      await refuse('PUT', `/consumers/${uuid}`, owner, uuid);
    }
    await refuse('GET', '/consumers/%00', undefined, 'Malformed uuid');
    assert.equal(accepted(await send('GET', `/consumers/${consumer}`)).text, before);
  });
});

/** How users share the seats of those that follow changes. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite, test } from 'node:test';
import { interestOf } from '../../src/fleet/follow/change_set.ts';
import { settingsFor, withStandIn } from '../keystone/stand_in.ts';
import { anyEngine } from '../support/engines.ts';
import { at } from '../support/requests.ts';
import { until } from '../support/until.ts';
import { serve } from './serving.ts';
import { openStream } from './stream.ts';

type Headers = Readonly<Record<string, string>>;
const version: Headers = { 'openstack-api-version': 'placement 2.5' };

async function refusal(url: string, headers: Headers): Promise<string> {
  const answer = await fetch(`${url}/changes`, { headers: { ...headers, accept: 'text/event-stream' } });
  assert.equal(answer.status, 429);
  assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
  return answer.text();
}

suite('the seats for following changes', () => {
  test('one user takes all seats while they are free, and other users get their share nevertheless', () =>
    withStandIn((standIn) => {
      const keystoneAuthtoken = settingsFor(standIn);
      const overrides = { api: { authStrategy: 'keystone' as const }, keystoneAuthtoken, changes: { maxFollowers: 4 } };
      return serve(anyEngine, overrides, async (url, service) => {
        // A second project gets no further seat.
        const headersOf = (user: string, project: string) => ({
          ...version,
          'x-auth-token': standIn.issue({ user, roles: ['admin'], project }),
        });
        const ada = [headersOf('ada', 'one'), headersOf('ada', 'two')] as const;
        const streams = [];
        for (const headers of [ada[0], ada[1], ada[0]]) {
          const stream = await openStream(`${url}/changes`, headers);
          await stream.next();
          streams.push(stream);
        }
        const present = await (await fetch(`${url}/changes`, { headers: ada[0] })).json();
        const next = String(at(present, 'next'));
        const waiting = fetch(`${url}/changes?since=${next}`, { headers: { ...ada[1], prefer: 'wait=60' } });
        await until('all seats are taken', () => service.followers.size === 4);
        assert.match(await refusal(url, ada[1]), /4 clients follow .* at least 2 more than user ada, which has 4/);

        const bob = headersOf('bob', 'one');
        const first = await openStream(`${url}/changes`, bob);
        await first.next();
        assert.deepEqual(await (await waiting).json(), { changes: [], next });
        const second = await openStream(`${url}/changes`, bob);
        await second.next();
        assert.equal(await streams[2]?.ended(), 'in order');
        assert.match(await refusal(url, bob), /than user bob, which has 2/);
        assert.match(await refusal(url, ada[0]), /than user ada, which has 2/);
        assert.equal(service.followers.size, 4);
        first.leave();
        await until('there is a seat', () => service.followers.size === 3);
        await (await openStream(`${url}/changes`, ada[0])).next();
      });
    }));

  test('simultaneous requests take no more seats than there are', () =>
    serve(anyEngine, { changes: { maxFollowers: 3 } }, async (url, service) => {
      const headers = { ...version, 'x-auth-token': 'admin' };
      const opened = await Promise.allSettled(Array.from({ length: 20 }, () => openStream(`${url}/changes`, headers)));
      assert.equal(opened.filter(({ status }) => status === 'fulfilled').length, 3);
      assert.equal(service.followers.size, 3);
    }));

  for (const when of ['before', 'while'] as const) {
    test(`a request whose seat another user got ${when} it follows is ended`, () =>
      serve(anyEngine, { changes: { maxFollowers: 2 } }, async (_url, { followers, fleet }) => {
        const [, youngest] = [followers.takeSeat('ada'), followers.takeSeat('ada')];
        const got: unknown[] = [];
        const follow = () =>
          youngest?.follow({ interest: interestOf(), send: (delivery) => got.push(delivery) }, fleet.recent.position);
        if (when === 'while') follow();
        assert.ok(followers.takeSeat('bob'));
        if (when === 'before') follow();
        assert.deepEqual(got, ['ended']);
        assert.equal(followers.size, 0);
      }));
  }

  test('without Keystone, clients share the seats by address, whatever user they name', () =>
    serve(
      anyEngine,
      { changes: { maxFollowers: 2 }, osloMiddleware: { enableProxyHeadersParsing: true } },
      async (url) => {
        const from = (client: string, user: string) => ({
          ...version,
          'x-auth-token': user,
          'x-roles': 'admin',
          // The proxy adds to what the client sends.
          'x-forwarded-for': `${randomUUID()}, ${client}`,
        });
        await (await openStream(`${url}/changes`, from('2001:db8::1', 'ada'))).next();
        const youngest = await openStream(`${url}/changes`, from('2001:db8::2', 'bob'));
        await youngest.next();
        assert.match(await refusal(url, from('2001:db8::3', 'eve')), /the address 2001:db8:0:0::\/64, which has 2/);
        await (await openStream(`${url}/changes`, from('10.1.2.3', 'ada'))).next();
        assert.equal(await youngest.ended(), 'in order');
      },
    ));
});

/** The processor time of a request, without a token and with one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lines, withHostileServer } from './server.ts';

test('the cost of a request grows in proportion to its length', () =>
  withHostileServer(async (server) => {
    const long = 100_000;
    const spaces = ' '.repeat(long);
    const newest = 'OpenStack-API-Version: placement 1.39';
    const headers: readonly (readonly [what: string, header: string])[] = [
      ['spaces in Accept', `Accept: a/b,${spaces}@`],
      ['parameters in Accept', `Accept: a/b${';a=b'.repeat(long / 4)}@`],
      ['quotes in Accept', `Accept: a/b${';a="\\"'.repeat(long / 6)}`],
      ['spaces before a weight', `Accept: a/b${spaces};q=2`],
      ['commas in Accept', `Accept: ${','.repeat(long)}`],
      ['ranges in Accept', `Accept: ${'a/b,'.repeat(long / 4)}`],
      ['a long Content-Type', `Content-Type: ${'<'.repeat(long)}`],
      ['a long version', `OpenStack-API-Version: ${'placement '.repeat(long / 10)}`],
      ['many versions', `OpenStack-API-Version: ${'placement 1.1,'.repeat(long / 14)}x`],
      ['a long older version', `X-OpenStack-Placement-API-Version: 1.1${spaces}x`],
      ['a long request id', `X-OpenStack-Request-Id: req-${'a'.repeat(long)}`],
      ['a long If-Match', `If-Match: ${'"a",'.repeat(long / 4)}@`],
      ['slashes in a prefix', `X-Forwarded-Prefix: ${'/'.repeat(long)}x`],
      ['a long Forwarded', `Forwarded: ${'for="a;'.repeat(long / 7)}`],
    ];
    const targets: readonly (readonly [what: string, target: string])[] = [
      ['slashes', '/'.repeat(long)],
      ['escapes', `/${'%41'.repeat(long / 3)}`],
      ['half escapes', `/${'%'.repeat(long)}`],
      ['dots', '/..'.repeat(long / 3)],
      ['line feeds', `/${'%0A'.repeat(long / 3)}x`],
      ['question marks', `/${'?'.repeat(long)}`],
      ['hashes', `/?${'%23'.repeat(long / 3)}`],
      ['spaces in an amount', `/resource_providers?resources=VCPU:1${'+'.repeat(long)}x`],
      ['spaces in a list of traits', `/resource_providers?required=A${'+'.repeat(long)}B`],
      ['spaces in a list of aggregates', `/resource_providers?member_of=in:a${'+'.repeat(long)}b`],
      ['spaces in a tree', `/allocation_candidates?resources=VCPU:1&in_tree=a${'+'.repeat(long)}b`],
      ['a long beginning of traits', `/traits?name=startswith:${'('.repeat(long)}`],
      ['braces in a UUID', `/resource_providers?uuid=a${'{'.repeat(long)}b`],
      ['braces in an aggregate', `/resource_providers?member_of=a${'{'.repeat(long)}b`],
    ];
    for (const token of [[], ['X-Auth-Token: admin']]) {
      const rest = ['Host: localhost', 'Connection: close', ...token];
      const requests = [
        ...headers.map(([what, header]) => [what, lines('GET /nowhere HTTP/1.1', header, ...rest)] as const),
        ...headers.map(
          ([what, header]) => [what, lines('POST /resource_providers HTTP/1.1', header, ...rest)] as const,
        ),
        ...targets.map(([what, target]) => [what, lines(`GET ${target} HTTP/1.1`, newest, ...rest)] as const),
      ];
      for (const [what, request] of requests) {
        const before = await server.cpuSeconds();
        const { closed, statuses } = await server.send(request, { patienceMs: 30_000 });
        assert.ok(closed && statuses.every((status) => status < 500), `${what}: ${statuses}`);
        // With a cost in proportion to the length this takes milliseconds. With a quadratic cost it took 7 and 13 s.
        const seconds = (await server.cpuSeconds()) - before;
        assert.ok(seconds < 2, `${what} took ${seconds} s of the processor`);
      }
    }
  }));

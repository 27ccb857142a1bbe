/** Requests that are not valid HTTP, or that two parsers could read in two ways. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goodHeaders, head, isRefused, lines, post, withHostileServer } from './server.ts';

const provider = '{"name": "smuggled"}';
/** A request that would create a provider if the server took it for a request. */
const inner = post(provider).toString();

test('smuggled or malformed requests are refused, and nothing after them is read', () =>
  withHostileServer(async (server) => {
    for (const [what, request] of [
      ['both lengths', `${head('Content-Length: 4', 'Transfer-Encoding: chunked')}0\r\n\r\n${inner}`],
      ['both lengths, the other order', `${head('Transfer-Encoding: chunked', 'Content-Length: 4')}0\r\n\r\n${inner}`],
      ['two lengths', `${head('Content-Length: 20', 'Content-Length: 0')}${provider}${inner}`],
      ['two equal lengths', `${head('Content-Length: 20', 'Content-Length: 20')}${provider}${inner}`],
      ['a list of lengths', `${head('Content-Length: 20, 20')}${provider}`],
      ['a negative length', `${head('Content-Length: -1')}${provider}`],
      ['a signed length', `${head('Content-Length: +20')}${provider}`],
      ['a hexadecimal length', `${head('Content-Length: 0x14')}${provider}`],
      ['a length beyond 64 bits', `${head('Content-Length: 99999999999999999999')}${provider}`],
      ['a space before a colon', `${head('Content-Length : 20')}${provider}`],
      ['a tab before a colon', `${head('Transfer-Encoding\t: chunked')}0\r\n\r\n`],
      ['a folded header', `${head('X-Folded: a', ' b', 'Content-Length: 20')}${provider}`],
      ['a folded first header', `POST / HTTP/1.1\r\n Host: localhost\r\n\r\n`],
      ['a header without a colon', `${head('Content-Length')}${provider}`],
      ['a header without a name', `${head(': 20')}${provider}`],
      ['a NUL in a header', `${head('X-Nul: a\0b', 'Content-Length: 20')}${provider}`],
      ['a carriage return in a header', `${head('X-Cr: a\rContent-Length: 20')}${provider}`],
      ['bare line feeds', head('Content-Length: 20').replaceAll('\r\n', '\n') + provider],
      ['a bare carriage return', head('Content-Length: 20').replaceAll('\r\n', '\r') + provider],
      ['an unknown encoding', `${head('Transfer-Encoding: gzip')}${provider}`],
      ['chunked, but not as the last encoding', `${head('Transfer-Encoding: chunked, identity')}0\r\n\r\n${inner}`],
      ['chunked twice', `${head('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked')}0\r\n\r\n${inner}`],
      ['chunked with a vertical tab', `${head('Transfer-Encoding: \u000bchunked')}0\r\n\r\n${inner}`],
      ['a chunk size that is no number', `${head('Transfer-Encoding: chunked')}xyz\r\n${provider}\r\n0\r\n\r\n`],
      ['a negative chunk size', `${head('Transfer-Encoding: chunked')}-14\r\n${provider}\r\n0\r\n\r\n`],
      ['a chunk size with 0x', `${head('Transfer-Encoding: chunked')}0x14\r\n${provider}\r\n0\r\n\r\n`],
      [
        'a chunk size beyond 64 bits',
        `${head('Transfer-Encoding: chunked')}fffffffffffffffff\r\n${provider}\r\n0\r\n\r\n`,
      ],
      ['a chunk longer than its size', `${head('Transfer-Encoding: chunked')}5\r\n${provider}\r\n0\r\n\r\n`],
      ['a bare line feed after a chunk size', `${head('Transfer-Encoding: chunked')}14\n${provider}\n0\n\n`],
      [
        'a chunk extension with a line feed',
        `${head('Transfer-Encoding: chunked')}14;a\nb\r\n${provider}\r\n0\r\n\r\n`,
      ],
      ['two hosts', `${head('Host: elsewhere', 'Content-Length: 20')}${provider}`],
      ['no host', lines('GET /resource_providers HTTP/1.1', 'X-Auth-Token: admin', 'Connection: close')],
      ['a host that is not valid', lines('GET /resource_providers HTTP/1.1', 'Host: a b<', ...goodHeaders.slice(1))],
      ['HTTP/0.9', 'GET /\r\n\r\n'],
      ['HTTP/1.9', lines('GET / HTTP/1.9', ...goodHeaders)],
      ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
      ['a lower case method', lines('get / HTTP/1.1', ...goodHeaders)],
      ['an unknown method', lines('BREW /resource_providers HTTP/1.1', ...goodHeaders)],
      ['CONNECT', lines('CONNECT example.com:443 HTTP/1.1', ...goodHeaders)],
      ['TRACE', lines('TRACE /resource_providers HTTP/1.1', ...goodHeaders)],
      ['a space in the target', lines('GET /resource providers HTTP/1.1', ...goodHeaders)],
      ['a NUL in the target', lines('GET /resource_providers?name=\0 HTTP/1.1', ...goodHeaders)],
      ['an asterisk for a target', lines('GET * HTTP/1.1', ...goodHeaders)],
      ['a target without a slash', lines('GET resource_providers HTTP/1.1', ...goodHeaders)],
      ['a TLS handshake', Buffer.from('16030100a5010000a10303', 'hex')],
      ['an upgrade to HTTP/2', lines('GET /nowhere HTTP/1.1', 'Upgrade: h2c', 'HTTP2-Settings: AAA', ...goodHeaders)],
      ['random bytes', Buffer.from(Array.from({ length: 4096 }, (_, index) => (index * 167 + 13) % 256))],
    ] as const) {
      await isRefused(server, what, request);
      assert.equal(await server.status('/resource_providers'), 200, what);
    }
  }));

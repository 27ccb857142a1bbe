import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { defaultConfig } from '../../src/config/config.ts';
import { osloLine } from '../../src/log/oslo_line.ts';

/** The default formats, which are upstream's. */
const formats = defaultConfig.default;
const globalRequestId = 'req-11111111-1111-4111-8111-111111111111';
const requestId = 'req-95f0d4b4-426d-4449-b05a-3e95c4fb1f79';

/** A time whose text is the same in each time zone. */
const time = new Date(2026, 10, 21, 11, 56, 0, 7).toISOString();
const line = (entry: object, changed: Partial<typeof formats> = {}): string =>
  osloLine(JSON.stringify({ level: 'info', time, ...entry }), { ...formats, ...changed }).replaceAll(
    ` ${process.pid} `,
    ' PID ',
  );

const request = {
  msg: 'request',
  requestId,
  method: 'GET',
  url: '/resource_providers?name=a b',
  client: '127.0.0.1',
  status: 200,
  bytes: 123,
  microversion: '1.39',
  ms: 1.25,
};

suite("a line is equal to the line of Debian's oslo.log 5 for the same context", () => {
  for (const [what, context, printed] of [
    [
      'both ids and a domain',
      { globalRequestId, user: 'u1', project: 'p1', userDomain: 'd' },
      `[${globalRequestId} ${requestId} u1 p1 - - d -]`,
    ],
    [
      'the scope of the system',
      { user: 'u1', project: 'p1', systemScope: 'all' },
      `[None ${requestId} u1 p1 - all - -]`,
    ],
    ['nobody', {}, `[None ${requestId} - - - - - -]`],
  ] as const) {
    test(what, () => {
      assert.equal(
        line({ ...request, ...context }),
        `2026-11-21 11:56:00.007 PID INFO placement.requestlog ${printed} 127.0.0.1 "GET /resource_providers?name=a b" ` +
          'status: 200 len: 123 microversion: 1.39 ms: 1.25\n',
      );
    });
  }

  test('no request', () => {
    assert.equal(
      line({ level: 'warn', msg: 'none', host: 'h' }),
      '2026-11-21 11:56:00.007 PID WARNING placement [-] none host: h\n',
    );
  });

  test('an error, with its stack in separate lines', () => {
    const err = { type: 'ZeroDivisionError', message: 'division by zero', stack: 'Error: oops\n    at file:1' };
    const prefix = '2026-11-21 11:56:00.007 PID ERROR placement';
    assert.equal(
      line({ level: 'error', msg: 'oops', requestId, err }),
      `${prefix} [None ${requestId} - - - - - -] oops: ZeroDivisionError: division by zero\n` +
        `${prefix} Error: oops\n${prefix}     at file:1\n`,
    );
  });
});

test('a value that was not known at the answer is a dash', () => {
  const { microversion, bytes, client, ...rest } = request;
  assert.ok(microversion && bytes && client);
  assert.match(line(rest), /] - "GET \S+ b" status: 200 len: - microversion: - ms: 1\.25\n$/);
});

test('configured formats can have widths, percent signs, and a dash for unknown values', () => {
  const printed = line(request, {
    loggingContextFormatString: '%(levelname)6s|%(msecs)03d|%(color)s100%% %(funcName)s %(user_name)s %(message)s',
  });
  assert.ok(printed.startsWith('  INFO|007|100% - - 127.0.0.1 "GET'), printed);
  assert.equal(line({ msg: 'a' }, { loggingDefaultFormatString: '<%(message)s>' }), '<a>\n');
});

test('no value can begin a line, end the quoted part, or change the direction of text', () => {
  const url = '/a"\n2026-11-21 00:00:00.000 1 INFO placement.requestlog [-] \u202e\u0085\u2028\u001b[2J';
  const printed = line({ ...request, url, user: 'a\r\nb' });
  assert.equal(printed.split(/[\n\r\u0085\u2028]/).length, 2);
  assert.ok(printed.includes('"GET /a%22\\n2026'), printed);
  assert.ok(printed.includes('\\u{202e}\\u{85}\\u{2028}\\u{1b}[2J" status: 200'), printed);
  assert.ok(printed.includes(' a\\r\\nb '), printed);
});

import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { Refusals } from './refusals.ts';

/**
 * Answers what requests expect by `Expect` (RFC 9110, 10.1.1): with 100 Continue before a request is carried out, and with 417 if it is
 * anything else.
 *
 * Node.js emits other events than `request` for them, and without a listener answers by itself: a request with several hosts would
 * get its 100 or 417 before anything looks at it. So they are emitted again as a `request`, and pass all that others pass.
 *
 * @returns a listener for the requests that passed all other checks; `listener` carries them out
 */
export function meetExpectations(server: Server, refusals: Refusals, listener: RequestListener): RequestListener {
  const expected = new WeakMap<IncomingMessage, 'to go on' | 'something unknown'>();
  server.on('checkContinue', (request: IncomingMessage, response) => {
    expected.set(request, 'to go on');
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (request: IncomingMessage, response) => {
    expected.set(request, 'something unknown');
    server.emit('request', request, response);
  });
  return (request, response) => {
    const what = expected.get(request);
    if (what === 'something unknown') {
      // The client may never send the body that its headers announce, so the connection ends.
      const value = request.headers.expect?.slice(0, 100);
      const detail = `A request may expect 100-continue, and nothing else: Expect is ${JSON.stringify(value)}`;
      const refusal = {
        reason: 'unknown expectation',
        status: 417,
        title: 'Expectation Failed',
        detail,
        request,
      } as const;
      refusals.refuse(request.socket, refusal, response);
      return;
    }
    const carryOut = (): void => {
      if (what === 'to go on') response.writeContinue();
      listener(request, response);
    };
    // Node.js puts the headers of an answer that waits for earlier ones before a 100 Continue that waits with it, so that
    // the client takes the 100 for a part of the body. So the request itself waits for its turn.
    if (what === 'to go on' && response.socket === null) response.once('socket', carryOut);
    else carryOut();
  };
}

import type { Server } from 'node:https';
import type { TLSSocket } from 'node:tls';
import type { OpenConnections } from './open_connections.ts';
import type { Refused } from './refusal.ts';
import type { Refusals } from './refusals.ts';

/**
 * Answers a client that speaks plain HTTP to the port of TLS, and reports it and every other client with which no TLS connection could
 * be made. A client that left by itself, such as a health check of TCP, is not reported.
 */
export function refuseHandshakes(
  server: Server,
  connections: OpenConnections,
  { refusals, report }: { readonly refusals: Refusals; readonly report: (refused: Refused) => void },
): void {
  server.on('tlsClientError', (error: TlsError, secure: TLSSocket) => {
    const { code = '', reason, message } = error;
    if (hasLeft.has(code)) return;
    const connection = connections.below(secure);
    if (code === 'ERR_SSL_HTTP_REQUEST' && connection !== undefined) {
      const detail =
        'This port speaks HTTPS ([ssl] cert_file), and the request came by plain HTTP: call it by https:// instead of http://';
      refusals.refuse(connection, { reason: 'plain HTTP', status: 400, title: 'Bad Request', detail });
      return;
    }
    report({
      reason: code === 'ERR_TLS_HANDSHAKE_TIMEOUT' ? 'late' : 'TLS handshake',
      detail: `No TLS connection could be made: ${reason ?? message}`,
      cause: code,
      client: secure.remoteAddress,
    });
  });
}

/** An error of OpenSSL has its words in `reason`; its message has places in its source code as well. */
type TlsError = NodeJS.ErrnoException & { readonly reason?: string };

const hasLeft: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

import type { HonoEnv } from './exchange.ts';

/** Whether the client has left: the connection broke, or it has closed its side. */
export const hasLeft = ({ incoming, outgoing }: HonoEnv['Bindings']): boolean =>
  (outgoing?.destroyed ?? false) || (incoming?.socket.readableEnded ?? false);

/**
 * Aborted where the client leaves, or has left while its request waited for the database. One that closes its side of the connection
 * counts as gone: nothing else is heard of it until something is sent.
 */
export function goneSignal({ incoming, outgoing }: HonoEnv['Bindings']): AbortSignal {
  const gone = new AbortController();
  if (outgoing?.closed || incoming?.socket.readableEnded) gone.abort();
  const leave = () => {
    incoming?.socket.off('end', leave);
    gone.abort();
  };
  incoming?.socket.once('end', leave);
  outgoing?.once('close', leave);
  return gone.signal;
}

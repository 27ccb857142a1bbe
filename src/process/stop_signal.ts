import { messageOf } from '../message_of.ts';

/** How long an orderly end may take; whoever supervises the process waits 30 s, as a rule. */
const patienceMs = 29_000;

/**
 * Ends the process on SIGTERM or SIGINT: in order at the first signal, with exit code 0, and at once at the second.
 *
 * @param stop closes everything; the process ends when it is done, and with exit code 1 when it fails or takes too long.
 */
export function onStopSignal(stop: (signal: NodeJS.Signals) => Promise<void>): void {
  let stopping = false;
  const handle = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(signal === 'SIGINT' ? 130 : 143);
    stopping = true;
    setTimeout(() => fail('it took too long'), patienceMs).unref();
    stop(signal).then(() => process.exit(0), fail);
  };
  process.on('SIGTERM', handle);
  process.on('SIGINT', handle);
}

function fail(reason: unknown): never {
  console.error(`The process could not end in order: ${messageOf(reason)}`);
  process.exit(1);
}

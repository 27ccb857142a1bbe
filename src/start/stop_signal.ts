import { messageOf, printError } from '../text/print.ts';

/** How long an orderly end may take. A supervisor of the process usually waits 30 s. */
const endWithinMs = 29_000;

/**
 * Ends the process on SIGTERM or SIGINT: the first signal starts an orderly end with exit code 0, the second ends it at
 * once.
 *
 * @param stop closes everything; then the process ends. If it fails or takes too long, the exit code is 1.
 */
export function onStopSignal(stop: (signal: NodeJS.Signals) => Promise<void>): void {
  let stopping = false;
  const handle = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(signal === 'SIGINT' ? 130 : 143);
    stopping = true;
    setTimeout(() => fail('it took too long'), endWithinMs).unref();
    stop(signal).then(() => process.exit(0), fail);
  };
  process.on('SIGTERM', handle);
  process.on('SIGINT', handle);
}

function fail(reason: unknown): never {
  printError(`The process could not end cleanly: ${messageOf(reason)}`);
  process.exit(1);
}

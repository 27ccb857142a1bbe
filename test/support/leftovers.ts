/**
 * Functions that end what tests of this process have started and left running, as a test that fails may. They are called after the last
 * test: otherwise the process would wait for what was left.
 */
const ends: (() => Promise<void>)[] = [];

/** Lets `end` be called after the last test of this process. */
export const endAfterTests = (end: () => Promise<void>): void => {
  ends.push(end);
};

/** Ends everything that was left. */
export async function endLeftovers(): Promise<void> {
  for (const end of ends) await end();
}

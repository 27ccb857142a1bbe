import type { TestContext } from 'node:test';

/** Lets time stand still until the end of a test, as timers and `performance.now()` see it. @returns a function by which it passes */
export function holdTime(t: TestContext): (ms: number) => void {
  let nowMs = 1_000;
  t.mock.method(performance, 'now', () => nowMs);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  return (ms) => {
    nowMs += ms;
    t.mock.timers.tick(ms);
  };
}

import type { CDPSession, Page } from 'playwright-core';

/** The number of turns of the wheel in the trace. */
const turns = 120;

/** The quantile: a given part of the values is below it. */
export const quantile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? Number.NaN;

type TraceEvent = {
  readonly name: string;
  readonly tid: number;
  readonly pid: number;
  readonly ts: number;
  readonly dur?: number;
  /** The CPU time of the thread: unlike `dur` it does not grow where other programs work. */
  readonly tdur?: number;
};

/** Zooms in and out while the browser traces itself. @returns the CPU time of the thread of the page for each frame, in milliseconds */
export async function tracedFrames(page: Page): Promise<readonly number[]> {
  const session = await page.context().newCDPSession(page);
  const events: TraceEvent[] = [];
  // The types of the protocol leave the events of a trace open.
  session.on('Tracing.dataCollected', ({ value }) => events.push(...(value as unknown as readonly TraceEvent[])));
  await session.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: ['devtools.timeline', 'disabled-by-default-devtools.timeline'] },
  });
  const { x, y, width, height } = (await page.locator('canvas').boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  await page.mouse.move(x + width / 3, y + height / 3);
  for (let turn = 0; turn < turns; turn++) await page.mouse.wheel(0, turn % 60 < 30 ? -60 : 60);
  await ended(session);
  const thread = events.find(({ name }) => name === 'FireAnimationFrame');
  const ours = events
    .filter(({ tid, pid }) => tid === thread?.tid && pid === thread.pid)
    .toSorted((a, b) => a.ts - b.ts);
  const starts = ours.filter(({ name }) => name === 'FireAnimationFrame').map(({ ts }) => ts);
  const tasks = ours.filter(({ name }) => name === 'RunTask');
  // A task belongs to the last frame that began before the task ended.
  return starts.map((start, index) => {
    const next = starts[index + 1] ?? Number.POSITIVE_INFINITY;
    const own = tasks.filter(({ ts, dur = 0 }) => ts + dur > start && ts + dur <= next);
    return own.reduce((sum, { dur = 0, tdur = dur }) => sum + tdur, 0) / 1000;
  });
}

function ended(session: CDPSession): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  session.on('Tracing.tracingComplete', () => resolve());
  return session.send('Tracing.end').then(() => promise);
}

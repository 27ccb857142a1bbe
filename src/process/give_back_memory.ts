import { Session } from 'node:inspector/promises';

/**
 * Collects all garbage, and gives its memory back to the system. V8 by itself keeps what a start leaves behind, 120 MB with
 * 100,000 providers: its heap grew for that, and shrinks only where memory is said to be low. This takes 0.02 s, or 0.3 s with as
 * many providers, in which nobody is answered.
 */
export async function giveBackMemory(): Promise<void> {
  const session = new Session();
  session.connect();
  try {
    await session.post('HeapProfiler.collectGarbage');
  } finally {
    session.disconnect();
  }
}

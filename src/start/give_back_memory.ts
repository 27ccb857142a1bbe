import { Session } from 'node:inspector/promises';

/**
 * Collects all garbage, and returns its memory to the system. V8 alone would keep the memory that the start needed,
 * 120 MB with 100,000 providers: its heap has grown, and shrinks only on a signal that memory is low. This takes 0.02
 * s, or 0.3 s with 100,000 providers, and no request is answered during that time.
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

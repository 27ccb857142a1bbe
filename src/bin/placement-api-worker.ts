import { messageOf } from '../message_of.ts';
import { serveAsWorker } from '../workers/worker.ts';

// Not for people: placement-api --workers starts it, and sends it what to do.
try {
  await serveAsWorker();
} catch (error) {
  console.error(`placement-api: a worker could not start: ${messageOf(error)}`);
  process.exit(1);
}

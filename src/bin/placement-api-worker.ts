import { messageOf } from '../rest/message_of.ts';
import { serveAsWorker } from '../workers/worker.ts';

// Not a command for users: placement-api --workers starts this program and sends it its task.
try {
  await serveAsWorker();
} catch (error) {
  console.error(`placement-api: a worker could not start: ${messageOf(error)}`);
  process.exit(1);
}

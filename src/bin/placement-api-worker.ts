import '../start/compile_cache.ts';
import { messageOf, printError } from '../text/print.ts';

// Not a command for users: placement-api --workers starts this program and sends it its task.
try {
  // Imported only here: a static import would be compiled before the cache is in use.
  const { serveAsWorker } = await import('../workers/worker.ts');
  await serveAsWorker();
} catch (error) {
  printError(`placement-api: a worker could not start: ${messageOf(error)}`);
  process.exit(1);
}

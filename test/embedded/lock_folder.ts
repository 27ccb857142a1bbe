/*
 * A process that locks the folder of an embedded database on request, and reports whether it could. The test of the lock
 * starts many of them.
 */
import { lockFolder } from '../../db/engine/embedded_folder.ts';

const [folder = ''] = process.argv.slice(2);
process.once('message', async () => {
  try {
    const unlock = await lockFolder(folder);
    process.send?.('locked');
    process.once('message', () => {
      unlock();
      process.disconnect();
    });
  } catch (error) {
    process.send?.(String(error));
    process.disconnect();
  }
});
process.send?.('ready');

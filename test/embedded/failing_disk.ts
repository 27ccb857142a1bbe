/* Makes every sync of this process fail, as on a broken disk: as a module of a test, or with `--import` from SIGUSR2 on. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const { fsyncSync, fdatasyncSync } = fs;

const fail = (): never => {
  throw Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO', syscall: 'fsync' });
};

/** @param fails whether syncs fail from now on */
export function failSyncs(fails: boolean): void {
  Object.assign(fs, fails ? { fsyncSync: fail, fdatasyncSync: fail } : { fsyncSync, fdatasyncSync });
  syncBuiltinESMExports();
}

process.on('SIGUSR2', () => failSyncs(true));

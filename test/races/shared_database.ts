import path from 'node:path';
import type { Config } from '../../src/config/config.ts';
import { type Engine, withFreshDatabase } from '../support/engines.ts';
import { inFolder } from '../support/in_folder.ts';
import { fillEmbedded } from '../support/templates.ts';

/**
 * Calls back with the configuration of a fresh database that server processes can open: one after the other, and on PostgreSQL several at a
 * time. It remains when they end.
 */
export async function withSharedDatabase<T>(
  engine: Engine,
  use: (config: Partial<Config['placementDatabase']>) => Promise<T>,
): Promise<T> {
  if (engine === 'postgresql') return withFreshDatabase(engine, ({ config }) => use(config));
  return inFolder(async (folder) => {
    const embeddedPath = path.join(folder, 'data');
    await fillEmbedded(embeddedPath);
    return await use({ embeddedPath });
  });
}

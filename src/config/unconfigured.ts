import type { LoadedConfig } from './load.ts';
import type { Override } from './sources.ts';

/**
 * Whether nobody configured anything: no file, and nothing in the environment but DATABASE_URL. Then there is no
 * authentication, since nobody could have set one up. Flags of the command line are for trying things and do not count.
 */
export const isUnconfigured = ({ files, settings }: LoadedConfig): boolean =>
  files.length === 0 &&
  settings.every(({ written }) => {
    if (written === undefined || written.source.from === 'command line') return true;
    return written.source.from === 'environment' && written.source.variable === 'DATABASE_URL';
  });

/** What holds then instead of upstream's default, keystone. */
export const withoutAuthentication: Override = {
  group: 'api',
  name: 'auth_strategy',
  text: 'noauth2',
  flag: 'no configuration',
};

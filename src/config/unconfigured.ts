import type { LoadedConfig } from './load.ts';
import type { Override } from './sources.ts';

/**
 * Whether nothing is configured: there is no file, and the environment has no option except DATABASE_URL. The service
 * then runs without authentication, because there are no settings of Keystone. Flags of the command line do not count:
 * they are for trying things out.
 */
export const isUnconfigured = ({ files, settings }: LoadedConfig): boolean =>
  files.length === 0 &&
  settings.every(({ written }) => {
    if (written === undefined || written.source.from === 'command line') return true;
    return written.source.from === 'environment' && written.source.variable === 'DATABASE_URL';
  });

/** The setting of a service without configuration, instead of upstream's default, keystone. */
export const withoutAuthentication: Override = {
  group: 'api',
  name: 'auth_strategy',
  text: 'noauth2',
  flag: 'no configuration',
};

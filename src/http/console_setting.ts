import type { Config } from '../config/config.ts';
import { isLoopback } from './loopback.ts';

/**
 * Whether the console is served: as configured, or by default where noauth2 serves a loopback address. It is not in
 * console.ts, which a service without a console does not load.
 */
export const servesConsole = ({ api, console }: Pick<Config, 'api' | 'console'>): boolean =>
  console.enabled ?? (api.authStrategy === 'noauth2' && isLoopback(api.host));

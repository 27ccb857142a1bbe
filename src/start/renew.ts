import { credentialKeys } from '../access/keystone/settings.ts';
import { type Config, ConfigError, changedOptions, type Option } from '../config/config.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { Listening } from '../http/server/listen.ts';
import { readTls } from '../http/server/tls_files.ts';
import type { Log } from '../log/log.ts';
import { problemsOf } from './config_flags.ts';
import { checkAuthentication, checkWorkers } from './startup.ts';

/** What a renewal needs. */
type RenewalParts = {
  readonly log: Log;
  /** @throws ConfigError */
  readonly readAgain: () => LoadedConfig;
};

/**
 * Makes the function that SIGHUP calls. It reads the configuration again, and applies the sections that can change while the service
 * serves: the log, the TLS certificate, the policy and the service user of Keystone. Their files are read again also if no option has
 * changed. A section with a mistake, or a service user that Keystone refuses, stays as it was; other options change at the next start. One
 * line of the log reports all of this.
 */
export function openRenewal(server: Listening, first: Config, { log, readAgain }: RenewalParts): () => Promise<void> {
  let inForce = first;

  async function renew(): Promise<void> {
    const before = inForce;
    const done: string[] = [];
    const mistakes: string[] = [];
    const doubts: string[] = [];
    /** Sections that stay as they were since they are broken. */
    const broken = new Set<string>();
    const attempt = async (section: string, failed: string, work: () => Promise<string> | string): Promise<void> => {
      try {
        done.push(await work());
      } catch (error) {
        mistakes.push(...problemsOf(error));
        broken.add(section);
        done.push(failed);
      }
    };
    let wanted = inForce;
    await attempt('', 'the configuration stays as it was', () => {
      const { config, warnings } = readAgain();
      checkAuthentication(config);
      checkWorkers(config);
      for (const warning of warnings) log.logger.warn(warning);
      wanted = config;
      return 'the configuration was read again';
    });
    await attempt('default', 'the log stays as it was', () => {
      log.renew(wanted.default);
      server.renewLogs?.(wanted.default);
      inForce = { ...inForce, default: wanted.default };
      return log.health.file() !== undefined ? 'the log file was opened again' : 'there is no log file to open again';
    });
    await attempt('osloPolicy', 'the policy rules stay as they were', async () => {
      const problems = (await server.renewPolicy?.(wanted.osloPolicy)) ?? [];
      if (problems.length > 0) throw new ConfigError(problems);
      inForce = { ...inForce, osloPolicy: wanted.osloPolicy };
      return 'the policy files were read again';
    });
    const isRead = !broken.has('');
    if (isRead && inForce.api.authStrategy === 'keystone' && wanted.api.authStrategy === 'keystone') {
      await attempt('keystoneAuthtoken', 'the service user of [keystone_authtoken] stays as it was', async () => {
        const credentials = credentialKeys.map((key) => [key, wanted.keystoneAuthtoken[key]] as const);
        const keystoneAuthtoken = { ...inForce.keystoneAuthtoken, ...Object.fromEntries(credentials) };
        const trial = await server.tryServiceUser?.(keystoneAuthtoken);
        if (trial?.isRefused) throw new ConfigError([trial.reason]);
        server.renewServiceUser?.(keystoneAuthtoken);
        inForce = { ...inForce, keystoneAuthtoken };
        if (trial === undefined) return 'the service user of [keystone_authtoken] was read again';
        doubts.push(trial.reason);
        return 'the service user of [keystone_authtoken] was read again and not tried yet';
      });
    }
    await attempt('ssl', 'the TLS certificate stays as it was', () => {
      const hasTls = inForce.ssl.certFile !== undefined;
      // TLS is not switched on or off for connections that are there.
      const ssl = hasTls === (wanted.ssl.certFile !== undefined) ? wanted.ssl : inForce.ssl;
      const tls = readTls(ssl);
      if (tls === undefined) return 'there is no TLS certificate to read again';
      server.renewTls(tls);
      inForce = { ...inForce, ssl };
      return 'the TLS certificate was read again';
    });
    const taken = changedOptions(before, inForce);
    const pending = changedOptions(inForce, wanted).filter(({ groupKey }) => !broken.has(groupKey));
    const line = [
      `SIGHUP: ${done.slice(0, -1).join(', ')}, and ${done.at(-1)}.`,
      ...doubts,
      ...(taken.length === 0 ? [] : [`Now in force: ${namesOf(taken)}.`]),
      ...(pending.length === 0 ? [] : [`Changed, and in force only after a restart: ${namesOf(pending)}.`]),
      ...mistakes.map((mistake) => `Mistake: ${mistake}`),
    ].join(' ');
    if (mistakes.length > 0) log.logger.error(line);
    else if (pending.length === 0 && doubts.length === 0) log.logger.info(line);
    else log.logger.warn(line);
  }

  // One renewal after the other, also if signals arrive faster.
  let last = Promise.resolve();
  return () => {
    last = last.then(renew);
    return last;
  };
}

const namesOf = (changed: readonly Option[]): string =>
  changed.map(({ group, name }) => `[${group}] ${name}`).join(', ');

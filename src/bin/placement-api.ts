#!/usr/bin/env node
import { Command } from 'commander';
import { addConfigFlags, type ConfigFlags, loadConfig, runCommand } from '../command_line.ts';
import type { Config } from '../config/config.ts';
import { showConfig } from '../config/show.ts';
import type { Override } from '../config/sources.ts';
import { isUnconfigured, withoutAuthentication } from '../config/unconfigured.ts';
import { type Listening, listen } from '../http/listen.ts';
import { readTls } from '../http/tls_files.ts';
import { openLog } from '../log.ts';
import { openService } from '../service.ts';
import { checkAuthentication, exposureWarning, unconfiguredNotice } from '../startup.ts';
import { onStopSignal } from '../stop_signal.ts';

type Flags = ConfigFlags & { readonly host?: string; readonly port?: string; readonly showConfig?: true };

const program = addConfigFlags(new Command('placement-api'))
  .description('Serves the OpenStack Placement API.')
  .option('--host <address>', 'the address to listen on, instead of [api] host')
  .option('--port <number>', 'the port to listen on, instead of [api] port; 0 for any free one')
  .option('--show-config', 'print the configuration that holds, and where each value comes from')
  .action(serve);
await runCommand(program, { failed: 1, noCommand: 1 });

async function serve(flags: Flags): Promise<void> {
  const overrides: readonly Override[] = [
    ...(flags.host === undefined ? [] : [{ group: 'api', name: 'host', text: flags.host, flag: '--host' }]),
    ...(flags.port === undefined ? [] : [{ group: 'api', name: 'port', text: flags.port, flag: '--port' }]),
  ];
  const written = loadConfig(flags, overrides);
  const unconfigured = isUnconfigured(written);
  const loaded = unconfigured ? loadConfig(flags, [...overrides, withoutAuthentication]) : written;
  if (flags.showConfig) {
    process.stdout.write(showConfig(loaded));
    return;
  }
  const { config } = loaded;
  checkAuthentication(config);
  const tls = await readTls(config.ssl);

  const { logger, reopen } = openLog(config.default);
  let close = async (): Promise<void> => {};
  onStopSignal(async (signal) => {
    logger.info({ signal }, 'Ending: no new requests, and those under way are answered');
    await close();
  });
  if (unconfigured) console.log(unconfiguredNotice(config));
  const warning = exposureWarning(config);
  if (warning !== undefined) console.error(warning);

  const service = await openService(config, { logger });
  const { host, port, clientTimeout } = config.api;
  try {
    const server = await listen(service.app, {
      host,
      port,
      clientTimeoutMs: clientTimeout * 1000,
      ...(tls === undefined ? {} : { tls }),
    });
    close = async () => {
      await server.close();
      await service.close();
    };
    process.on('SIGHUP', () => {
      reopen();
      renewTls(server, config.ssl).then(
        (renewed) =>
          logger.info(renewed ? 'The TLS certificate was read again' : 'There is no TLS certificate to read again'),
        (err) => logger.error({ err }, 'The TLS certificate stays as it was'),
      );
    });
    console.log(`placement-api listens on ${server.url}`);
  } catch (error) {
    await service.close();
    throw error;
  }
}

/** Reads the files of `[ssl]` again; the policy files are watched without being told. */
async function renewTls(server: Listening, ssl: Config['ssl']): Promise<boolean> {
  const tls = await readTls(ssl);
  if (tls !== undefined) server.renewTls(tls);
  return tls !== undefined;
}

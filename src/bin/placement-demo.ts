import '../start/node_version.ts';
import { Command } from 'commander';
import { wholeNumber } from '../cli/amounts.ts';
import { readHosts } from '../cli/demo_command.ts';
import { connect } from '../client/index.ts';
import { defaultConfig } from '../config/config.ts';
import { fillDemo } from '../demo/fill.ts';
import { liveDemo } from '../demo/live.ts';
import { listen } from '../http/server/listen.ts';
import { runCommand } from '../start/run_command.ts';
import { openService } from '../start/service.ts';
import { onStopSignal } from '../start/stop_signal.ts';
import { print } from '../text/print.ts';

/*
 * `make demo`: a service in memory with a demo fleet whose consumers are created and deleted, and a console. The package does not have it.
 */

type DemoFlags = { readonly hosts: number; readonly port: number };

const program = new Command('placement-demo')
  .description('Serves a demo fleet from memory, and prints the address of its console.')
  .option('--hosts <number>', 'how many hosts', readHosts, 1000)
  .option('--port <number>', 'the port to listen on; 0 for any free one', wholeNumber(0, 65_535), 8778)
  .action(serve);
await runCommand(program, { failed: () => 1, noCommand: 1 });

async function serve({ hosts, port }: DemoFlags): Promise<void> {
  const { api, placementDatabase, history } = defaultConfig;
  const service = await openService({
    ...defaultConfig,
    api: { ...api, authStrategy: 'noauth2' },
    placementDatabase: { ...placementDatabase, embeddedPath: 'memory://' },
    history: { ...history, enabled: true },
  });
  const server = await listen(service.app, { host: api.host, port, onRefused: service.onRefused });
  const ended = new AbortController();
  onStopSignal(async () => {
    ended.abort();
    service.endWaits();
    await server.close();
    await service.close();
  });
  const placement = connect({ endpoint: server.url, auth: 'admin' });
  const { consumers } = await fillDemo(placement, hosts, (line) => print(line));
  print(
    `\nOpen ${server.url}/console in a browser: ${hosts} hosts, where consumers come and go, and jobs wait in a line. Ctrl-C ends it.`,
  );
  await liveDemo(placement, consumers, ended.signal).catch((error: unknown) => {
    if (!ended.signal.aborted) throw error;
  });
}

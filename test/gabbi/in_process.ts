import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { listen } from '../../src/http/server/listen.ts';
import type { Engine } from '../support/engines.ts';
import { type ConfigOverrides, openTestService } from '../support/services.ts';
import type { OpenServer } from './folder.ts';
import { policyText } from './server_command.ts';

/** Starts the service in this process, on a fresh database of the engine and a free port of 127.0.0.1. */
export const openInProcess =
  (engine: Engine): OpenServer =>
  async ({ config, policy }) => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-policy-'));
    const removeFolder = () => rm(folder, { recursive: true, force: true });
    try {
      const policyFile = path.join(folder, 'policy.yaml');
      await writeFile(policyFile, policyText(policy));
      const overrides: ConfigOverrides = { ...config, osloPolicy: { ...config.osloPolicy, policyFile } };
      const service = await openTestService(engine, overrides);
      const listening = await listen(service.app, { host: '127.0.0.1', port: 0 });
      return {
        url: listening.url,
        database: service.database,
        close: async () => {
          await listening.close();
          await service.close();
          await removeFolder();
        },
      };
    } catch (error) {
      await removeFolder();
      throw error;
    }
  };

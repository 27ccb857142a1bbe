#!/usr/bin/env node
import { pino } from 'pino';
import { defaultConfig } from '../config/config.ts';
import { listen } from '../http/listen.ts';
import { openService } from '../service.ts';

const config = {
  ...defaultConfig,
  placementDatabase: {
    ...defaultConfig.placementDatabase,
    ...(process.env.DATABASE_URL ? { connection: process.env.DATABASE_URL, syncOnStartup: true } : {}),
  },
};
const service = await openService(config, { logger: pino({ level: process.env.LOG ?? 'warn' }) });
const server = await listen(service.app, { host: '127.0.0.1', port: Number(process.env.PORT ?? 8778) });
console.log(server.url);
process.once('SIGTERM', async () => {
  await server.close();
  await service.close();
});

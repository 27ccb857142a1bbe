import { newest } from './chooser.ts';
import type { Connection } from './connection.ts';

/** Whether a server answers a read that needs the database. */
export const serves = async (server: Connection): Promise<boolean> =>
  (await server.send({ method: 'GET', path: '/resource_providers?name=none', microversion: newest }))?.status === 200;

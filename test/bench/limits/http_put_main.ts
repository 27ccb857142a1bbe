import http from 'node:http';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

/*
 * A server that parses the JSON of every PUT and answers 204, with `node:http`, or with Hono if the argument is `hono`.
 * It sends its URL to its parent process, and ends with that process.
 */

const address = { hostname: '127.0.0.1', port: 0 };
const tell = (port: number): void => {
  process.send?.({ url: `http://${address.hostname}:${port}` });
};
process.on('disconnect', () => process.exit());

if (process.argv[2] === 'hono') {
  const app = new Hono();
  app.put('/allocations/:consumer', async (c) => {
    await c.req.json();
    return c.body(null, 204);
  });
  serve({ ...address, fetch: app.fetch }, ({ port }) => tell(port));
} else {
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      JSON.parse(Buffer.concat(chunks).toString());
      response.writeHead(204).end();
    });
  });
  server.listen(address.port, address.hostname, () => {
    const bound = server.address();
    tell(typeof bound === 'object' && bound !== null ? bound.port : 0);
  });
}

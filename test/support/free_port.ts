import net from 'node:net';

/*
 * Ports for programs that cannot be told to take any free one. The kernel gives those from 32768 on (macOS: 49152) to each connection and to each
 * server that takes any, so that one of them may be gone before the program listens. So these are below, and each process begins elsewhere.
 */
const [first, count, perProcess] = [10_000, 22_000, 37];
let last = (process.pid * perProcess) % count;

/** A TCP port of 127.0.0.1 on which nothing listens. This process gets it once. */
export async function freePort(): Promise<number> {
  for (;;) {
    last = (last + 1) % count;
    const port = first + last; // another call may go on meanwhile
    if (await isFree(port)) return port;
  }
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

/* `placement-api`, with the arguments of this process. It ends when its parent process has ended for any reason. */

process.on('disconnect', () => process.exit());
process.channel?.unref(); // with that listener the channel would keep a process whose start has failed
await import('../../src/bin/placement-api.ts');

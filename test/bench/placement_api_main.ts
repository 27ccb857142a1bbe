/* `placement-api`, with the arguments of this process. It ends when its parent process has ended for any reason. */

process.on('disconnect', () => process.exit());
await import('../../src/bin/placement-api.ts');

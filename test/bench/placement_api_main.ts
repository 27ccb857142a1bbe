/* `placement-api`, with the arguments of this process; it ends when the process that forked it is gone, however that ended. */

process.on('disconnect', () => process.exit());
await import('../../src/bin/placement-api.ts');

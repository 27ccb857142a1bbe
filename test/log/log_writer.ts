/** Writes log lines of several lengths, as the worker in the argument. */
import { defaultConfig } from '../../src/config/config.ts';
import { openLog } from '../../src/log/log.ts';

const { logger } = openLog({ ...defaultConfig.default, useJson: true }, Number(process.argv[2]));
for (let count = 0; count < 3000; count += 1) logger.info({ url: '/x'.repeat(count % 200) }, 'a line');

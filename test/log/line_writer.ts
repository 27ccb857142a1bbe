import { defaultConfig } from '../../src/config/config.ts';
import { openLog } from '../../src/log/log.ts';

/* A process that writes one line to the log, in JSON if it has an argument. */
const { logger } = openLog({ ...defaultConfig.default, ...(process.argv[2] === undefined ? {} : { useJson: true }) });
logger.info('A line');

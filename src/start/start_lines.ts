import type { Log } from '../log/log.ts';
import { print } from '../text/print.ts';
import { printWarnings } from './command_line.ts';

/** What a start says: to the terminal or systemd, and into the log file where there is one. */
export type StartLines = {
  line(text: string): void;
  /** @param printed those that were printed before the log was opened */
  warnings(texts: readonly (string | undefined)[], printed: readonly string[]): void;
  /** @throws the error itself, which the command prints */
  failure(error: unknown): never;
};

/** Without a log file the log is on standard error, beside these lines. */
export const startLines = ({ logger, isFile }: Pick<Log, 'logger' | 'isFile'>): StartLines => ({
  line: (text) => {
    print(text);
    if (isFile) logger.info(text);
  },
  warnings: (texts, printed) => {
    printWarnings(texts);
    if (!isFile) return;
    for (const text of [...printed, ...texts]) if (text !== undefined) logger.warn(text);
  },
  failure: (error) => {
    if (isFile) logger.fatal({ err: error }, 'The start failed');
    throw error;
  },
});

import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

// Imported before a program by --import: writes the address of each module that the program loads to the file that RECORDED_MODULES names.
const file = process.env.RECORDED_MODULES ?? '';
registerHooks({
  load: (url, context, nextLoad) => {
    appendFileSync(file, `${url}\n`);
    return nextLoad(url, context);
  },
});

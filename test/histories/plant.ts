import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { mistakes } from './mistakes.ts';

/*
 * Imported before a server starts, as `plant.ts?mistake=NAME`: the server then reads one file of its source with one change.
 */

const name = new URL(import.meta.url).searchParams.get('mistake');
const mistake = mistakes.find((each) => each.name === name);
if (mistake === undefined) throw new Error(`There is no mistake named ${name}.`);
const { file, more = [] } = mistake;
const target = path.join(import.meta.dirname, '..', '..', file);
const planted = [mistake, ...more].reduce(
  (source, { from, to }) => {
    if (source.split(from).length !== 2) throw new Error(`${file} does not have once: ${from}`);
    return source.replace(from, () => to);
  },
  readFileSync(target, 'utf8'),
);

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context);
    if (!url.startsWith('file:') || fileURLToPath(url) !== target) return loaded;
    return { ...loaded, source: planted };
  },
});

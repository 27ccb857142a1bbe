import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { fileOf, mistakes, withMistake } from './mistakes.ts';

/*
 * Imported before a server starts, as `plant.ts?mistake=NAME`: the server then reads one file of its source with one change.
 */

const name = new URL(import.meta.url).searchParams.get('mistake');
const mistake = mistakes.find((each) => each.name === name);
if (mistake === undefined) throw new Error(`There is no mistake named ${name}.`);
const target = fileOf(mistake);
const planted = withMistake(mistake);

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context);
    if (!url.startsWith('file:') || fileURLToPath(url) !== target) return loaded;
    return { ...loaded, source: planted };
  },
});

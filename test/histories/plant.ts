import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { withMistake } from './mistake.ts';
import { mistakes } from './mistakes.ts';

/*
 * Imported before a server starts, as `plant.ts?mistake=NAME`: the server then reads some files of its source with changes.
 */

const name = new URL(import.meta.url).searchParams.get('mistake');
const mistake = mistakes.find((each) => each.name === name);
if (mistake === undefined) throw new Error(`There is no mistake named ${name}.`);
const planted = withMistake(mistake);

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context);
    const source = url.startsWith('file:') ? planted.get(fileURLToPath(url)) : undefined;
    return source === undefined ? loaded : { ...loaded, source };
  },
});

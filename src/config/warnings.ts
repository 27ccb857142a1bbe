import { existsSync } from 'node:fs';
import { explain } from './explain.ts';
import type { Setting } from './load.ts';
import { nearName } from './near_name.ts';
import { options } from './options.ts';
import type { ConfigFile } from './search.ts';

const groups = new Set(options.map(({ group }) => group));

/**
 * One sentence for each setting that is probably a mistake, but no error.
 *
 * @param pluginGroup the section that `auth_section` names, which may have any name
 */
export function findWarnings(
  files: readonly ConfigFile[],
  settings: readonly Setting[],
  pluginGroup: string,
): readonly string[] {
  return [...misspelledSections(files, pluginGroup), ...missingPolicyFile(settings)];
}

/**
 * Real files have sections of many libraries. So only a name that is almost the name of one of our sections is
 * reported.
 */
function misspelledSections(files: readonly ConfigFile[], pluginGroup: string): readonly string[] {
  return files.flatMap(({ file, sections }) =>
    [...sections.keys()].flatMap((section) => {
      if (groups.has(section) || section === pluginGroup) return [];
      const meant = nearName(section, groups);
      return meant === undefined
        ? []
        : [`${file}: section [${section}] has no option of this service and is ignored. Did you mean [${meant}]?`];
    }),
  );
}

function missingPolicyFile(settings: readonly Setting[]): readonly string[] {
  const setting = settings.find(({ option }) => option.group === 'oslo_policy' && option.name === 'policy_file');
  if (!setting?.written?.texts.at(-1) || existsSync(String(setting.value))) return [];
  const problem = 'there is no such file, so the default rules apply';
  return [explain(setting.option, setting.written, problem, [String(setting.value)])];
}

import { existsSync } from 'node:fs';
import { nearName } from '../text/near_name.ts';
import { explain } from './explain.ts';
import type { Setting } from './load.ts';
import { groups, knownNames } from './options.ts';
import type { ConfigFile } from './search.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * One sentence for each setting that is probably a mistake, but no error.
 *
 * @param pluginGroup the section that `auth_section` names, which may have any name
 */
export function findWarnings(
  files: readonly ConfigFile[],
  env: Environment,
  settings: readonly Setting[],
  pluginGroup: string,
): readonly string[] {
  return [
    ...misspelledSections(files, pluginGroup),
    ...misspelledOptions(files, pluginGroup),
    ...misspelledVariables(env),
    ...missingPolicyFile(settings),
  ];
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

/** Reports only names that are almost the name of an option in the same section: libraries have other options there. */
function misspelledOptions(files: readonly ConfigFile[], pluginGroup: string): readonly string[] {
  return files.flatMap(({ file, sections }) =>
    [...sections].flatMap(([section, values]) => {
      const { known, meant } = knownNames(section === pluginGroup ? 'keystone_authtoken' : section);
      return [...values].flatMap(([name, written]) => {
        const near = known.has(name) ? undefined : nearName(name, meant);
        if (near === undefined) return [];
        return written.map(({ line }) => `${file}:${line}: [${section}] ${unknownOption(name, near)}`);
      });
    }),
  );
}

function misspelledVariables(env: Environment): readonly string[] {
  return Object.keys(env).flatMap((variable) => {
    const [, section = '', name = ''] = /^OS_([A-Z_]+?)__([A-Z_]+)$/.exec(variable) ?? [];
    const { known, meant } = knownNames(section === 'DEFAULT' ? section : section.toLowerCase());
    const near = known.has(name.toLowerCase()) ? undefined : nearName(name, meant);
    if (near === undefined) return [];
    return [`environment: ${unknownOption(variable, `OS_${section}__${near.toUpperCase()}`)}`];
  });
}

const unknownOption = (name: string, near: string): string =>
  `${name} is no option of this service and is ignored. Did you mean ${near}?`;

function missingPolicyFile(settings: readonly Setting[]): readonly string[] {
  const setting = settings.find(({ option }) => option.group === 'oslo_policy' && option.name === 'policy_file');
  if (!setting?.written?.texts.at(-1) || existsSync(String(setting.value))) return [];
  const problem = 'there is no such file, so the default rules apply';
  return [explain(setting.option, setting.written, problem, [String(setting.value)])];
}

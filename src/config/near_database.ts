import { nearName } from '../text/near_name.ts';
import { groups } from './options.ts';
import type { ConfigFile } from './search.ts';

const databaseUrl = /^\s*(?:mysql|mariadb|sqlite|postgres(?:ql)?)(?:\+\w+)?:\/\//i;

/**
 * The options of the files that probably should name the database, but are not `[placement_database] connection`: a
 * misspelled option or section, or `[database] connection` as in the files of other services. Each is
 * `placement.conf:2: [placement_database] conection`, without its value, which may have a password.
 */
export function findNearDatabase(files: readonly ConfigFile[]): readonly string[] {
  return files.flatMap(({ file, sections }) =>
    [...sections].flatMap(([section, values]) =>
      [...values].flatMap(([name, written]) => {
        const last = written.at(-1);
        if (last === undefined || !isNear(section, name, last.value)) return [];
        return [`${file}:${last.line}: [${section}] ${name}`];
      }),
    ),
  );
}

/**
 * In a section of this service any database URL counts. In other sections the option must also be called `connection`
 * or nearly so.
 */
function isNear(section: string, name: string, value: string): boolean {
  const isNamed = nearName(name, ['connection']) !== undefined;
  const ours = groups.has(section) ? section : nearName(section, groups);
  if (ours === 'placement_database' && isNamed) return true;
  return databaseUrl.test(value) && (ours !== undefined || isNamed);
}

import { readFileSync } from 'node:fs';
import { parseOsloIni } from '../config/oslo_ini.ts';
import { substitute } from '../config/substitution.ts';
import { messageOf } from '../text/message_of.ts';
import { readSourceUrl, type SourceSettings } from './import/source_url.ts';

/** The flags that name the source of `placement-manage import`. */
export type SourceFlags = { readonly from?: string; readonly fromConfig?: string };

/**
 * The source that the flags name. If the URL has no password, that of the environment variable MYSQL_PWD is used.
 *
 * @returns `problem` without the URL, which may hold a password
 * @throws Error if the configuration file cannot be read
 */
export function findSource(
  { from, fromConfig }: SourceFlags,
  environment: Readonly<Record<string, string | undefined>>,
): { readonly value: SourceSettings } | { readonly problem: string } {
  if ((from === undefined) === (fromConfig === undefined)) return { problem: 'give either --from or --from-config' };
  const url = from ?? readConnection(fromConfig ?? '');
  if (url === undefined) return { problem: `${fromConfig} has no [placement_database] connection` };
  const reading = readSourceUrl(url);
  if ('problem' in reading) {
    return {
      problem: `${from === undefined ? `${fromConfig}: [placement_database] connection` : '--from'} ${reading.problem}`,
    };
  }
  return { value: { ...reading.value, password: reading.value.password ?? environment.MYSQL_PWD } };
}

/** Reads the URL from the placement.conf of the deployment to import. */
function readConnection(file: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(`${file} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
  const written = parseOsloIni(text, file).get('placement_database')?.get('connection')?.at(-1)?.value;
  return written === undefined ? undefined : substitute(written, () => undefined);
}

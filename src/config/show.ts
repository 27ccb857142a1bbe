import { strip } from '../text/strings.ts';
import { maskUrls } from './database_url.ts';
import type { LoadedConfig, Setting } from './load.ts';
import { escapeDollars } from './oslo_ini.ts';
import { sourceName } from './sources.ts';

/**
 * The text of `--show-config`: each option with its value in effect, and above it the purpose of the option and the
 * source of the value. The text, read as a configuration file, results in the same configuration, except for masked secrets.
 * A secret is shown as `***`; in a URL only the password is.
 */
export function showConfig({ settings, files }: LoadedConfig): string {
  const read = files.length === 0 ? '# No configuration file was found.' : `# Files: ${files.join(', ')}`;
  const groups = new Set(settings.map(({ option }) => option.group));
  const sections = [...groups].map((group) => {
    const members = settings.filter(({ option }) => option.group === group);
    return [`[${group}]`, ...members.map((setting) => showSetting(setting).join('\n'))].join('\n\n');
  });
  return `${[read, ...sections].join('\n\n')}\n`;
}

function showSetting({ option, value, written, secret }: Setting): readonly string[] {
  const about = [
    `# ${option.help} (${option.type.expected})`,
    `# ${written === undefined ? 'default' : sourceName(written.source)}`,
  ];
  if (value === undefined) return [...about, `# ${option.name} is not set`];
  if (secret && !(option.type.url && typeof value === 'string')) return [...about, `${option.name} = ***`];
  if (Array.isArray(value) && option.type.multi) {
    return [...about, ...value.map((item) => `${option.name} = ${writeText(String(item))}`)];
  }
  return [...about, `${option.name} = ${writeText(Array.isArray(value) ? value.join(',') : String(value))}`];
}

/**
 * Writes a value as in a file: in quotes if it begins or ends with white space or quotes, with later lines indented.
 */
function writeText(text: string): string {
  const escaped = escapeDollars(maskUrls(text));
  const [first = '', ...further] = escaped.split('\n');
  const bare = strip(first) === first && !(/^["']/.test(first) && first.endsWith(first.charAt(0)));
  const quoted = bare ? first : `"${first}"`;
  return [quoted, ...further].join('\n  ');
}

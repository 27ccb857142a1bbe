import { strip } from '../python_strip.ts';
import { maskUrls } from './database_url.ts';
import { sourceName } from './explain.ts';
import type { LoadedConfig, Setting } from './load.ts';
import { escapeDollars } from './substitution.ts';

/**
 * The text of `--show-config`: each option with the value that holds, and above it where that comes from. Apart from masked
 * secrets it is a file that means the same. Secrets are `***`; of URLs only the password is.
 */
export function showConfig({ settings, files }: LoadedConfig): string {
  const read = files.length === 0 ? '# No configuration file was found.' : `# Files: ${files.join(', ')}`;
  const groups = new Set(settings.map(({ option }) => option.group));
  const sections = [...groups].map((group) => {
    const members = settings.filter(({ option }) => option.group === group);
    return [`[${group}]`, ...members.flatMap(showSetting)].join('\n');
  });
  return `${[read, ...sections].join('\n\n')}\n`;
}

function showSetting({ option, value, written, secret }: Setting): readonly string[] {
  const source = `# ${written === undefined ? 'default' : sourceName(written.source)}`;
  if (value === undefined) return [source, `# ${option.name} is not set`];
  if (secret && !(option.type.url && typeof value === 'string')) return [source, `${option.name} = ***`];
  if (Array.isArray(value) && option.type.multi) {
    return [source, ...value.map((item) => `${option.name} = ${writeText(String(item))}`)];
  }
  return [source, `${option.name} = ${writeText(Array.isArray(value) ? value.join(',') : String(value))}`];
}

/** As a file has it: quoted where white space or quotes at the ends would be lost, further lines indented. */
function writeText(text: string): string {
  const escaped = escapeDollars(maskUrls(text));
  const [first = '', ...further] = escaped.split('\n');
  const bare = strip(first) === first && !(/^["']/.test(first) && first.endsWith(first.charAt(0)));
  const quoted = bare ? first : `"${first}"`;
  return [quoted, ...further].join('\n  ');
}

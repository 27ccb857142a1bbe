import { maskUrls } from './database_url.ts';
import type { Option } from './options.ts';
import type { Source, Written } from './sources.ts';

/** The place of a value, as messages show it: `/etc/placement/placement.conf:12`. */
export function sourceName(source: Source): string {
  if (source.from === 'file') return `${source.file}:${source.line}`;
  return source.from === 'environment' ? source.variable : source.flag;
}

/**
 * One line about a mistake: `/etc/placement/placement.conf:12: [api] auth_strategy = "none": must be one of ...`. The
 * value of a secret option is hidden, except for the scheme of a database URL.
 *
 * @param resolved the texts after substitution, if they may be shown
 */
export function explain(
  option: Option,
  { texts, source }: Written,
  problem: string,
  resolved: readonly string[],
): string {
  const place = source.from === 'file' ? source : option;
  const [shown, meant] = [texts, resolved].map((values) => (option.secret ? redact(values) : quote(values)));
  const value = shown === meant ? shown : `${shown} (which is ${meant})`;
  return `${sourceName(source)}: [${place.group}] ${place.name} = ${value}: ${problem}.`;
}

const longest = 100;

function quote(texts: readonly string[]): string {
  const text = maskUrls(texts.join(', '));
  return JSON.stringify(text.length > longest ? `${text.slice(0, longest)}...` : text);
}

function redact([text = '']: readonly string[]): string {
  if (text === '') return '""';
  const scheme = /^(?:mysql|mariadb|sqlite|postgres(?:ql)?)(?:\+\w+)?:\/\//.exec(text)?.[0] ?? '';
  return `${scheme}***`;
}

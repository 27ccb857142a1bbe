/** The labels of a series, with its name as `__name__`. */
export type Labels = Readonly<Record<string, string>>;

/** A value of a series at one scrape. */
export type Sample = { readonly labels: Labels; readonly value: number };

/** Reads the text format of Prometheus. */
export function readSamples(text: string): readonly Sample[] {
  return text.split('\n').flatMap((line) => {
    const [, name, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) return [];
    const pairs = labels.matchAll(/(?:^|,)(\w+)="((?:[^"\\]|\\.)*)"/g);
    const read = Array.from(pairs, ([, label = '', written = '']) => [label, written.replace(/\\(.)/g, unescaped)]);
    return [{ labels: { __name__: name, ...Object.fromEntries(read) }, value: numberOf(value) }];
  });
}

const unescaped = (_: string, character: string): string => (character === 'n' ? '\n' : character);

const numberOf = (text: string): number =>
  /^[+-]?inf$/i.test(text) ? Number(`${text[0] === '-' ? '-' : ''}Infinity`) : Number(text);

/** A series as promtool and PromQL write it: `name{label="value"}`. */
export function seriesText({ __name__, ...labels }: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return `${__name__}{${pairs.join(',')}}`;
}

/** What a scrape tells, by name: of histograms also their series. */
export type Exposition = ReadonlyMap<string, { readonly type: string; readonly labels: ReadonlySet<string> }>;

/** Reads the text format of Prometheus as far as names, types and labels go; test/http/probes.test.ts holds it to its grammar. */
export function readExposition(text: string): Exposition {
  const types = new Map<string, string>();
  const found = new Map<string, { type: string; labels: Set<string> }>();
  for (const line of text.split('\n')) {
    const [, typed, type] = /^# TYPE (\w+) (\w+)$/.exec(line) ?? [];
    if (typed !== undefined && type !== undefined) types.set(typed, type);
    const [, name, labels = ''] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    if (name === undefined) continue;
    const seen = found.get(name) ?? {
      type: types.get(name) ?? types.get(name.replace(/_(bucket|sum|count)$/, '')) ?? 'untyped',
      labels: new Set<string>(),
    };
    for (const [, label = ''] of labels.matchAll(/(?:^|,)(\w+)="(?:[^"\\]|\\.)*"/g)) seen.labels.add(label);
    found.set(name, seen);
  }
  return found;
}

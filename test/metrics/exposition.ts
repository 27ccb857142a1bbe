/** The metrics of a scrape, by name. A histogram also has its series here. */
export type Exposition = ReadonlyMap<string, { readonly type: string; readonly labels: ReadonlySet<string> }>;

/**
 * Reads names, types and labels from the text format of Prometheus. test/http/probes.test.ts checks the format itself.
 */
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

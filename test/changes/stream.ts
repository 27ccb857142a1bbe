/** An event of a stream. */
export type StreamEvent = { readonly id?: string; readonly event?: string; readonly data: unknown };

/** A stream of events, read as a browser reads it. */
export type Stream = {
  readonly headers: Headers;
  /** The next event that has data. */
  next(): Promise<StreamEvent>;
  /** The text of the next event or comment; undefined at the end. */
  block(): Promise<string | undefined>;
  /** How the stream ended, after all events. */
  ended(): Promise<'in order' | 'broken'>;
  leave(): void;
};

/** Opens a stream of events. */
export async function openStream(url: string, headers: Readonly<Record<string, string>>): Promise<Stream> {
  const leaving = new AbortController();
  const answer = await fetch(url, { headers: { ...headers, accept: 'text/event-stream' }, signal: leaving.signal });
  if (answer.status !== 200 || answer.body === null) throw new Error(`${answer.status} ${await answer.text()}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const block = async (): Promise<string | undefined> => {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end !== -1) {
        const found = text.slice(0, end);
        text = text.slice(end + 2);
        return found;
      }
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += value;
    }
  };
  const parse = (found: string): Record<string, string> =>
    Object.fromEntries(found.split('\n').flatMap((line) => (line.startsWith(':') ? [] : [fieldOf(line)])));
  return {
    headers: answer.headers,
    block,
    next: async () => {
      for (;;) {
        const found = await block();
        if (found === undefined) throw new Error('The stream has ended.');
        const { data, ...rest } = parse(found);
        if (data !== undefined) return { ...rest, data: JSON.parse(data) };
      }
    },
    ended: async () => {
      try {
        while ((await block()) !== undefined);
        return 'in order';
      } catch {
        return 'broken';
      }
    },
    leave: () => leaving.abort(),
  };
}

const fieldOf = (line: string): [string, string] => {
  const colon = line.indexOf(':');
  return [line.slice(0, colon), line.slice(colon + 1).trimStart()];
};

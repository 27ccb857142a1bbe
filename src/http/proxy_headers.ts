/** How the client called, as the proxies in front say. */
export type Forwarded = {
  readonly scheme: string | undefined;
  readonly host: string | undefined;
  /** The address of the client, for logs. A client can invent it where its proxy adds to what it sends. */
  readonly client: string | undefined;
  /** The address from which the nearest proxy has the request: no client can invent it. */
  readonly sender: string | undefined;
  /** The path under which the outermost proxy publishes the service, without a slash at its end. */
  readonly prefix: string;
};

/** For a service that believes no proxy. */
export const notForwarded: Forwarded = {
  scheme: undefined,
  host: undefined,
  client: undefined,
  sender: undefined,
  prefix: '',
};

/**
 * Reads what proxies say: `Forwarded` (RFC 7239), or without it `X-Forwarded-Proto`, `-Host` and `-For`, and in any
 * case `X-Forwarded-Prefix`. Where there are several proxies, the values of the first one count, which is nearest to
 * the client; only `sender` is what the last one says.
 */
export function readForwarded(headers: Headers): Forwarded {
  const first = (name: string): string | undefined => headers.get(name)?.split(',')[0]?.trim() || undefined;
  const forwarded = headers.get('forwarded');
  const prefix = withoutLastSlashes(first('x-forwarded-prefix') ?? '');
  if (!forwarded) {
    return {
      scheme: first('x-forwarded-proto'),
      host: first('x-forwarded-host'),
      client: first('x-forwarded-for'),
      sender: headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() || undefined,
      prefix,
    };
  }
  const elements = forwarded.split(',');
  const named = parametersOf(elements[0] ?? '');
  const sender = parametersOf(elements.at(-1) ?? '')('for');
  return { scheme: named('proto'), host: named('host'), client: named('for'), sender, prefix };
}

/** The parameters of what one proxy says in `Forwarded`, by name. */
function parametersOf(element: string): (name: string) => string | undefined {
  const parameters = new Map(
    element.split(';').map((pair): [string, string] => {
      const equals = pair.indexOf('=');
      const value = equals === -1 ? '' : pair.slice(equals + 1).trim();
      return [pair.slice(0, equals).trim().toLowerCase(), value.replace(/^"(.*)"$/, '$1')];
    }),
  );
  return (name) => parameters.get(name) || undefined;
}

/** A loop, since the time of a regular expression would grow by the square of the number of slashes elsewhere. */
function withoutLastSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

const defaultPorts: Readonly<Record<string, string>> = { http: ':80', https: ':443' };

/**
 * Scheme and authority by which the client called, `https://cloud.example.com`: those of the request, unless a proxy
 * says otherwise.
 */
export function forwardedOrigin(origin: string, { scheme, host }: Forwarded): string {
  if (scheme === undefined && host === undefined) return origin;
  const [ownScheme = '', ownHost = ''] = origin.split('://');
  const actual = scheme ?? ownScheme;
  const port = defaultPorts[actual];
  const authority = host ?? ownHost;
  return `${actual}://${port !== undefined && authority.endsWith(port) ? authority.slice(0, -port.length) : authority}`;
}

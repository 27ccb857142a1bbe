import type { Token } from './token.ts';

/** The method and path of a request, which access rules allow or not. */
export type Access = { readonly method: string; readonly path: string };

/**
 * Whether the access rules of an application credential allow a request to this service.
 *
 * @param serviceType the type of this service; where it is unknown, tokens with access rules are refused.
 * @param forService whether a service sends the request on behalf of the user: the access rules then allowed the user's
 *   own request to that service, of which this one is a part.
 */
export function isAccessAllowed(
  { accessRules, serviceTypes }: Token,
  access: Access,
  serviceType: string | undefined,
  forService: boolean,
): boolean {
  if (accessRules === undefined) return true;
  if (serviceType === undefined) return false;
  if (serviceTypes !== undefined && !serviceTypes.includes(serviceType)) return false;
  return (
    forService ||
    accessRules.some(
      ({ method, path, service }) =>
        method === access.method && service === serviceType && matchesRule(path, access.path),
    )
  );
}

/**
 * Whether a path matches a rule: `{name}` and `*` are any segment of a path, `**` is anything. All places of the rule
 * that the path may have reached are followed at once. Users write the rules, and a regular expression could take hours
 * for some of them.
 */
function matchesRule(rule: string, path: string): boolean {
  const tokens = rule.match(/\{[^}]*\}|\*\*|./gs) ?? [];
  let places = new Set<number>();
  const reach = (found: Set<number>, place: number): void => {
    found.add(place);
    if (tokens[place] === '**') reach(found, place + 1);
  };
  reach(places, 0);
  for (const character of path.split('')) {
    const next = new Set<number>();
    for (const place of places) {
      const token = tokens[place];
      if (token === '**') reach(next, place);
      else if (token === '*' || (token !== undefined && token.length > 1)) {
        if (character === '/') continue;
        next.add(place);
        reach(next, place + 1);
      } else if (token === character) reach(next, place + 1);
    }
    places = next;
  }
  return places.has(tokens.length);
}

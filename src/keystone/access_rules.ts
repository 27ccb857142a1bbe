import type { Token } from './token.ts';

/** What a request does, as access rules see it. */
export type Access = { readonly method: string; readonly path: string };

/**
 * Whether the access rules of an application credential allow a request to this service.
 *
 * @param serviceType the type of this service; where it is unknown, tokens with access rules are refused.
 * @param forService whether a service sends the request: then the user was allowed to ask for something else, of which
 *   this request is a part.
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
        method === access.method && service === serviceType && pathPattern(path).test(access.path),
    )
  );
}

/** `{name}` and `*` are any part of a path, `**` is anything. */
function pathPattern(path: string): RegExp {
  const source = path.replace(/\{[^}]*\}|\*\*|\*|[^{}*]+|[{}]/g, (part) => {
    if (part === '**') return '.*';
    if (part === '*' || (part.startsWith('{') && part.endsWith('}'))) return '[^/]+';
    return part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  });
  return new RegExp(`^${source}$`, 's');
}

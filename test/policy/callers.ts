import type { SomeToken, StandIn } from '../keystone/stand_in.ts';
import type { Allowed, Operation } from './operations.ts';

/** A kind of caller of the API. */
export type Caller = {
  readonly name: string;
  /** What Keystone knows of the token; without it, there is none. */
  readonly token?: SomeToken;
  /** What happens to the token before its first use. */
  readonly revoked?: boolean;
  /** Whether a service of its own token sends the request for the caller. */
  readonly throughService?: boolean;
  /** Whether Keystone confirms the token; if not, each request that needs one is a 401. */
  readonly confirmed: boolean;
  /** For application credentials: the requests that their access rules name, `GET /resource_providers/{uuid}`; others are a 401. */
  readonly only?: readonly string[];
};

const mine = { project: 'p1' };
const others = { project: 'p2' };
const confirmed = true;

const ofProject = (name: string, ...roles: readonly string[]): readonly Caller[] => [
  { name: `${name} of the project`, token: { ...mine, roles }, confirmed },
  { name: `${name} of another project`, token: { ...others, roles }, confirmed },
];

const ofNone = (name: string, scope: SomeToken): readonly Caller[] =>
  ['reader', 'admin', 'service'].map((role) => ({
    name: `${role} of ${name}`,
    token: { ...scope, roles: ['reader', role] },
    confirmed,
  }));

const everyRequest = ['GET', 'POST', 'PUT', 'DELETE'].map((method) => ({ method, path: '/**', service: 'placement' }));
const someRequests = ['GET /usages', 'GET /resource_providers/{uuid}', 'PUT /allocations/{uuid}'];
const someRules = someRequests.map((request) => {
  const [method = '', path = ''] = request.split(' ');
  return { method, path, service: 'placement' };
});
const elsewhere = everyRequest.map((rule) => ({ ...rule, service: 'compute' }));

export const callers: readonly Caller[] = [
  { name: 'without a token', confirmed: false },
  { name: 'with an expired token of an admin', token: { ...mine, roles: ['admin'], lifetime: -5 }, confirmed: false },
  { name: 'with a revoked token of an admin', token: { ...mine, roles: ['admin'] }, revoked: true, confirmed: false },
  ...ofProject('admin', 'admin', 'member', 'reader'),
  ...ofProject('service', 'service'),
  ...ofProject('member', 'member', 'reader'),
  ...ofProject('reader', 'reader'),
  ...ofProject('manager', 'manager', 'member', 'reader'),
  { name: 'without a role', token: mine, confirmed },
  { name: 'without a scope', token: {}, confirmed },
  { name: 'with several roles', token: { ...mine, roles: ['Admin', 'auditor', 'READER', 'service'] }, confirmed },
  { name: 'with roles that are nearly right', token: { ...mine, roles: ['admins', 'service_api'] }, confirmed },
  ...ofNone('a domain', { domain: 'd1' }),
  ...ofNone('the system', { system: true }),
  {
    name: 'application credential of an admin for all requests',
    token: { ...mine, roles: ['admin'], accessRules: everyRequest },
    confirmed,
  },
  {
    name: 'application credential of a reader for all requests',
    token: { ...mine, roles: ['reader'], accessRules: everyRequest },
    confirmed,
  },
  {
    name: 'application credential of an admin for some requests',
    token: { ...mine, roles: ['admin'], accessRules: someRules },
    confirmed,
    only: someRequests,
  },
  {
    name: 'application credential of an admin for another service',
    token: { ...mine, roles: ['admin'], accessRules: elsewhere },
    confirmed,
    only: [],
  },
  // The roles of the service are not those of the caller; but the caller's token may have expired meanwhile.
  { name: 'reader through a service', token: { ...mine, roles: ['reader'] }, throughService: true, confirmed },
  {
    name: 'admin through a service, with an expired token',
    token: { ...mine, roles: ['admin'], lifetime: -5 },
    throughService: true,
    confirmed,
  },
];

/** The headers by which a caller is known. */
export function headersOf({ token, revoked, throughService }: Caller, keystone: StandIn): Record<string, string> {
  if (token === undefined) return {};
  const issued = keystone.issue(token);
  if (revoked) keystone.revoke(issued);
  const service = throughService && keystone.issue({ project: 'service', roles: ['service'] });
  return { 'x-auth-token': issued, ...(service && { 'x-service-token': service }) };
}

/** What must happen with the request of a caller, by the default rules and nothing else. */
export function rightOutcome(
  { token = {}, confirmed, only }: Caller,
  { method, path, allowed, project }: Operation,
): 401 | 403 | 'passes' {
  if (allowed === 'everybody') return 'passes';
  if (!confirmed) return 401;
  const operation = `${method} ${path.replaceAll(/\{\w+\}/g, '{uuid}')}`;
  if (only !== undefined && !only.includes(operation)) return 401;
  // All rules have scope_types=['project']; a token without any scope counts as one of a project.
  if (token.domain !== undefined || token.system) return 403;
  const roles = (token.roles ?? []).map((role) => role.toLowerCase());
  const readsIt = roles.includes('reader') && token.project !== undefined && token.project === project;
  const passes: Readonly<Record<Exclude<Allowed, 'everybody'>, boolean>> = {
    admin: roles.includes('admin'),
    service: roles.includes('service'),
    'admin or service': roles.includes('admin') || roles.includes('service'),
    'admin, service or reader of the project': roles.includes('admin') || roles.includes('service') || readsIt,
  };
  return passes[allowed] ? 'passes' : 403;
}

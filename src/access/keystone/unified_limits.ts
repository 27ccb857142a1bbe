import * as v from 'valibot';
import { openServiceToken } from './service_token.ts';
import { identityUrl, type KeystoneSettings, keystoneProblems, tlsOptions } from './settings.ts';
import { KeystoneFault, parseJson } from './token.ts';
import { openTransport } from './transport.ts';

/** A service in the catalog of Keystone. */
export type CatalogService = { readonly id: string; readonly name: string; readonly type: string };

/** A value of Keystone's unified limits. -1 means unlimited. */
export type UnifiedLimit = { readonly name: string; readonly value: number };

/** The unified limits of one service in one region. */
export type UnifiedLimits = {
  readonly service: CatalogService;
  /** Null for a limit without a region. */
  readonly region: string | null;
  /** For projects without an explicit limit. */
  readonly registered: readonly UnifiedLimit[];
  /** The limits of projects. */
  readonly limits: readonly (UnifiedLimit & { readonly project: string })[];
  /** Limits of domains, which are no limits of a project. */
  readonly domains: readonly (UnifiedLimit & { readonly domain: string })[];
};

/** Which limits are read. */
export type LimitSelection = {
  /** The id, the name or the type of a service. */
  readonly service: string;
  /** `none` for limits without a region; undefined where all limits of the service are of one region, or of none. */
  readonly region: string | undefined;
};

const value = v.pipe(v.number(), v.safeInteger());
const ofService = {
  service_id: v.string(),
  region_id: v.nullish(v.string(), null),
  resource_name: v.string(),
};
/** An answer with only some, by Keystone's option list_limit. */
const truncated = v.object({ truncated: v.literal(true) });
const services = v.object({
  services: v.array(v.object({ id: v.string(), type: v.optional(v.string(), ''), name: v.optional(v.string(), '') })),
});
const model = v.object({ model: v.object({ name: v.string() }) });
const registeredLimits = v.object({
  registered_limits: v.array(v.object({ ...ofService, default_limit: value })),
});
const projectLimits = v.object({
  limits: v.array(
    v.object({
      ...ofService,
      resource_limit: value,
      project_id: v.nullish(v.string(), null),
      domain_id: v.nullish(v.string(), null),
    }),
  ),
});

/** How long all requests to Keystone may take together, and one of them. */
const budgetMs = 60_000;
const attemptMs = 30_000;

/** Keystone shows to a token without the system scope only the limits of its project, without a sign that other limits are left out. */
const giveRole = 'a role in the system scope: openstack role add --user USER --user-domain DOMAIN --system all reader';

/**
 * Reads the unified limits of a service from Keystone, with the user of `[keystone_authtoken]` in the system scope.
 *
 * @throws Error with a sentence for the operator: settings that are missing, an unknown service, several regions, a model of limits other than
 *   flat, or an answer that is not complete
 */
export async function readUnifiedLimits(settings: KeystoneSettings, selection: LimitSelection): Promise<UnifiedLimits> {
  const problems = keystoneProblems({ ...settings, systemScope: 'all' });
  if (settings.authUrl === undefined || problems.length > 0) throw new Error(problems.join(' '));
  const transport = openTransport({
    url: identityUrl(settings.authUrl),
    tls: () => tlsOptions(settings),
    timeoutMs: attemptMs,
    timeoutSource: `${budgetMs / 1000} s for all requests to Keystone`,
    maxRetries: settings.httpRequestMaxRetries,
    maxConnections: 1,
    onAttempt: () => {},
  });
  const deadlineMs = performance.now() + budgetMs;
  try {
    const token = await openServiceToken({ ...settings, systemScope: 'all' }, transport)
      .get(deadlineMs)
      .catch((error: unknown) => {
        throw error instanceof KeystoneFault
          ? new KeystoneFault(`${error.message} The user also needs ${giveRole}`)
          : error;
      });
    const get = async <T>(path: string, schema: v.GenericSchema<unknown, T>): Promise<T> => {
      const request = { method: 'GET', path, headers: { 'x-auth-token': token } } as const;
      const { status, text } = await transport.send(request, deadlineMs);
      if (status === 403)
        throw new KeystoneFault(`Keystone refuses to show ${path}. The user of [keystone_authtoken] needs ${giveRole}`);
      if (status !== 200) throw new KeystoneFault(`Keystone answers ${status} to GET ${path}.`);
      const json = parseJson(text);
      const parsed = v.safeParse(schema, json);
      if (!parsed.success) throw new KeystoneFault(`The answer of Keystone to GET ${path} has an unknown form.`);
      if (v.is(truncated, json)) {
        throw new KeystoneFault(`Keystone shows only a part of ${path}. Raise list_limit in its configuration.`);
      }
      return parsed.output;
    };
    const { model: found } = await get('/limits/model', model);
    if (found.name !== 'flat') {
      throw new Error(
        `Keystone enforces limits by the model ${found.name}, in which the limit of a project also holds for the projects below it. ` +
          'Only the model flat can be imported.',
      );
    }
    const service = findService((await get('/services', services)).services, selection.service);
    const of = `service_id=${encodeURIComponent(service.id)}`;
    const registered = (await get(`/registered_limits?${of}`, registeredLimits)).registered_limits;
    const limits = (await get(`/limits?${of}`, projectLimits)).limits;
    const region = findRegion([...registered, ...limits], selection);
    const isOf = ({ service_id, region_id }: (typeof registered | typeof limits)[number]) =>
      service_id === service.id && region_id === region;
    return {
      service,
      region,
      registered: registered.filter(isOf).map(({ resource_name: name, default_limit: value }) => ({ name, value })),
      limits: limits.filter(isOf).flatMap(({ resource_name: name, resource_limit: value, project_id: project }) => {
        return project === null ? [] : [{ name, value, project }];
      }),
      domains: limits.filter(isOf).flatMap(({ resource_name: name, resource_limit: value, project_id, domain_id }) => {
        return project_id !== null || domain_id === null ? [] : [{ name, value, domain: domain_id }];
      }),
    };
  } finally {
    transport.close();
  }
}

function findService(services: readonly CatalogService[], wanted: string): CatalogService {
  const found = services.filter(({ id, name, type }) => [id, name, type].includes(wanted));
  const [service] = found;
  const list = (among: readonly CatalogService[]) => among.map(({ id, name, type }) => `${name} (${type}) ${id}`);
  if (service === undefined) {
    throw new Error(`Keystone has no service ${wanted}. It has ${list(services).join(', ') || 'none'}.`);
  }
  if (found.length > 1)
    throw new Error(`Several services are called ${wanted}; give an id: ${list(found).join(', ')}.`);
  return service;
}

/**
 * The region of the selection, or that all limits are of.
 *
 * @throws Error also where there are no limits: a mistyped service or region must not delete all that was imported before
 */
function findRegion(
  limits: readonly { readonly region_id: string | null }[],
  { region, service }: LimitSelection,
): string | null {
  const all = [...new Set(limits.map(({ region_id }) => region_id))];
  const names = all.map((name) => name ?? 'none').sort();
  const [first, ...others] = all;
  if (first === undefined) {
    throw new Error(
      `Service ${service} has no limits in Keystone, so nothing is changed. "placement limit delete" deletes limits that were imported.`,
    );
  }
  if (region === undefined) {
    if (others.length > 0)
      throw new Error(`Service ${service} has limits of several regions. Choose by --region: ${names.join(', ')}.`);
    return first;
  }
  if (!names.includes(region)) {
    throw new Error(
      `Service ${service} has no limits of region ${region}, so nothing is changed. It has some of: ${names.join(', ')}.`,
    );
  }
  return region === 'none' ? null : region;
}

import * as v from 'valibot';
import type { Identity } from '../../rest/identity.ts';
import { Cache } from '../../text/cache.ts';

/** Keystone's answer about a token. */
export type Token = {
  readonly identity: Identity;
  /** In milliseconds since 1970. */
  readonly expiresAtMs: number;
  /** What the token may be used for; undefined for everything. */
  readonly accessRules: readonly AccessRule[] | undefined;
  /** The types of service in the catalog; undefined if none was requested. */
  readonly serviceTypes: readonly string[] | undefined;
};

/** A request that an application credential may be used for. */
type AccessRule = { readonly method: string; readonly path: string; readonly service: string };

/** Keystone's answer says nothing about the token. */
export class KeystoneFault extends Error {}

const named = v.object({ id: v.string() });
const owned = v.object({ id: v.string(), domain: v.optional(named) });
const answerSchema = v.object({
  token: v.object({
    expires_at: v.string(),
    user: owned,
    project: v.optional(owned),
    domain: v.optional(named),
    system: v.optional(v.object({ all: v.optional(v.boolean()) })),
    roles: v.optional(v.array(v.object({ name: v.string() })), []),
    is_admin_project: v.optional(v.boolean(), true),
    catalog: v.optional(v.array(v.object({ type: v.string() }))),
    application_credential: v.optional(
      v.object({
        access_rules: v.optional(v.array(v.object({ method: v.string(), path: v.string(), service: v.string() }))),
      }),
    ),
  }),
});

/** Reads the answer to `GET /v3/auth/tokens`. @throws KeystoneFault */
export function readToken(text: string): Token {
  const parsed = v.safeParse(answerSchema, parseJson(text));
  const expiresAtMs = parsed.success ? Date.parse(parsed.output.token.expires_at) : Number.NaN;
  // The message does not quote the answer, which may hold secrets.
  if (!parsed.success || Number.isNaN(expiresAtMs))
    throw new KeystoneFault('The answer of Keystone about a token has an unknown form.');
  const { user, project, domain, system, roles, is_admin_project, catalog, application_credential } =
    parsed.output.token;
  return {
    identity: {
      userId: user.id,
      userDomainId: user.domain?.id,
      projectId: project?.id,
      projectDomainId: project?.domain?.id,
      roles: roles.map(({ name }) => name),
      domainId: domain?.id,
      systemScope: system?.all ? 'all' : undefined,
      isAdminProject: is_admin_project,
      expiresAtMs,
      service: undefined,
    },
    expiresAtMs,
    accessRules: application_credential?.access_rules,
    serviceTypes: catalog?.map(({ type }) => type),
  };
}

/** The value of a JSON text; undefined where it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Remembers values for a time. */
export type TokenCache<T> = {
  get(key: string): T | undefined;
  set(key: string, value: T): void;
};

/** @param options.seconds how long a value is remembered; 0 or less for not at all. */
export function openTokenCache<T>({
  seconds,
  limit,
}: {
  readonly seconds: number;
  /** How many values there are at most; the oldest one is removed first. */
  readonly limit: number;
}): TokenCache<T> {
  const entries = new Cache<string, { readonly value: T; readonly untilMs: number }>(limit);
  return {
    get: (key) => {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      if (performance.now() < entry.untilMs) return entry.value;
      entries.delete(key);
      return undefined;
    },
    set: (key, value) => {
      if (seconds > 0) entries.set(key, { value, untilMs: performance.now() + seconds * 1000 });
    },
  };
}

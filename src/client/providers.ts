import { allOptional, filterParameters, type ProviderFilter, type Resources } from './filters.ts';
import { type Microversion, type RequestSince, type Since, versionNumber } from './microversions.ts';
import { type Ask, type Call, type CallOptions, listed, pathOf, type Tagged, type WriteOptions } from './operation.ts';

/** A resource provider: a host, a NUMA node, a device, a pool. */
export type Provider<Version extends Microversion = Microversion> = {
  readonly uuid: string;
  readonly name: string;
  /** Guards the provider's inventories, traits and aggregates. */
  readonly generation: number;
  readonly links: readonly { readonly rel: string; readonly href: string }[];
} & Since<Version, '1.14', { readonly parent_provider_uuid: string | null; readonly root_provider_uuid: string }> &
  Tagged<Version>;

/** A provider to create. */
export type NewProvider<Version extends Microversion = Microversion> = {
  readonly name: string;
  /** Default: the server chooses a UUID. */
  readonly uuid?: string | undefined;
} & RequestSince<Version, '1.14', { readonly parent_provider_uuid?: string | null | undefined }>;

/** The new name and parent of a provider. */
export type ProviderChange<Version extends Microversion = Microversion> = {
  readonly name: string;
} & RequestSince<
  Version,
  '1.14',
  {
    /** If absent, the parent stays. null removes the parent (from 1.37). */
    readonly parent_provider_uuid?: string | null | undefined;
  }
>;

/** Which providers are listed. A provider must meet all these conditions. */
export type ProviderQuery = ProviderFilter & { readonly name?: string | undefined; readonly uuid?: string | undefined };

/** The allocations on a provider, by the UUIDs of the consumers. */
export type ProviderAllocations<Version extends Microversion = Microversion> = {
  readonly allocations: {
    readonly [consumer: string]: { readonly resources: Resources } & Since<
      Version,
      '1.28',
      { readonly consumer_generation: number | null }
    > &
      Since<Version, '2.9', { readonly name: string | null }>;
  };
  readonly resource_provider_generation: number;
};

/** Resource providers. */
export type ProviderCalls<Version extends Microversion> = {
  list(query?: ProviderQuery, options?: CallOptions): Promise<readonly Provider<Version>[]>;
  show(uuid: string, options?: CallOptions): Promise<Provider<Version>>;
  create(provider: NewProvider<Version>, options?: CallOptions): Promise<Provider<Version>>;
  update(uuid: string, change: ProviderChange<Version>, options?: WriteOptions): Promise<Provider<Version>>;
  delete(uuid: string, options?: WriteOptions): Promise<void>;
  allocations(uuid: string, options?: CallOptions): Promise<ProviderAllocations<Version>>;
};

/** Microversion 1.14 introduced trees. */
const treesSince = versionNumber('1.14');
const filtersSince = {
  member_of: versionNumber('1.3'),
  resources: versionNumber('1.4'),
  in_tree: treesSince,
  required: versionNumber('1.18'),
};

const root = pathOf('resource_providers');

/** Makes the calls about providers. */
export function providerCalls<Version extends Microversion>(call: Call, ask: Ask): ProviderCalls<Version> {
  const show = (uuid: string, options?: CallOptions) =>
    ask<Provider<Version>>({ method: 'GET', path: root + pathOf(uuid) }, options);
  return {
    list: async ({ name, uuid, ...filter } = {}, options) => {
      const query = [...allOptional({ name, uuid }), ...filterParameters(filter, filtersSince)];
      return listed<Provider<Version>>(ask, 'resource_providers', { query }, options);
    },
    show,
    create: async (provider, options) => {
      const reply = await call({ method: 'POST', path: root, ...nested(provider) }, options);
      // Up to 1.19 the answer has no body, but a header with the URL of the provider.
      if (reply.body !== undefined) return reply.body as Provider<Version>; // as the API has it at this version
      return show(reply.headers.get('location')?.split('/').at(-1) ?? '', options);
    },
    update: (uuid, change, options) => ask({ method: 'PUT', path: root + pathOf(uuid), ...nested(change) }, options),
    delete: (uuid, options) => ask({ method: 'DELETE', path: root + pathOf(uuid) }, options),
    allocations: (uuid, options) => ask({ method: 'GET', path: root + pathOf(uuid, 'allocations') }, options),
  };
}

/**
 * Makes the body. If there is a parent and the version has no trees, the request is refused instead of losing the
 * parent.
 */
function nested(body: { readonly parent_provider_uuid?: string | null | undefined }) {
  const hasParent = body.parent_provider_uuid !== undefined && body.parent_provider_uuid !== null;
  return {
    body: (version: number) => (version >= treesSince ? body : { ...body, parent_provider_uuid: undefined }),
    ...(hasParent ? { since: treesSince } : {}),
  };
}

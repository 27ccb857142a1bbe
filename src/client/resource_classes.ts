import { type Microversion, versionNumber } from './microversions.ts';
import { type Ask, type Call, type CallOptions, listed, pathOf, type Tagged, type WriteOptions } from './operation.ts';

/** From 1.2 on. */
export type ResourceClassCalls<Version extends Microversion = Microversion> = {
  list(options?: CallOptions): Promise<readonly string[]>;
  /** @throws ApiError 404 where there is no such class */
  show(name: string, options?: CallOptions): Promise<ResourceClass<Version>>;
  /** Creates a custom class, which must not exist yet. */
  create(name: string, options?: CallOptions): Promise<void>;
  /** Makes sure that a custom class exists. From 1.7. @returns whether this call created it */
  ensure(name: string, options?: CallOptions): Promise<boolean>;
  /** Renames a custom class. Up to 1.6. */
  rename(name: string, newName: string, options?: CallOptions): Promise<ResourceClass<Version>>;
  delete(name: string, options?: WriteOptions): Promise<void>;
};

/** A class. Standard classes have no tag, because they cannot be changed. */
export type ResourceClass<Version extends Microversion = Microversion> = {
  readonly name: string;
  readonly links: readonly { readonly rel: string; readonly href: string }[];
} & Partial<Tagged<Version>>;

const since = versionNumber('1.2');
const lastRename = versionNumber('1.6');
const root = pathOf('resource_classes');

/** Makes the calls about resource classes. */
export function resourceClassCalls<Version extends Microversion>(call: Call, ask: Ask): ResourceClassCalls<Version> {
  return {
    list: async (options) => {
      return (await listed<ResourceClass>(ask, 'resource_classes', { since }, options)).map(({ name }) => name);
    },
    show: (name, options) => ask({ method: 'GET', path: root + pathOf(name), since }, options),
    create: (name, options) => ask({ method: 'POST', path: root, since, body: () => ({ name }) }, options),
    ensure: async (name, options) => {
      const path = root + pathOf(name);
      const reply = await call({ method: 'PUT', path, since: lastRename + 1, repeatable: () => true }, options);
      return reply.status === 201;
    },
    rename: (name, newName, options) => {
      const path = root + pathOf(name);
      return ask({ method: 'PUT', path, since, until: lastRename, body: () => ({ name: newName }) }, options);
    },
    delete: (name, options) => ask({ method: 'DELETE', path: root + pathOf(name), since }, options),
  };
}

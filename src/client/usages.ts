import { optional, type Resources } from './filters.ts';
import type { Guarded } from './inventories.ts';
import { type From, type Microversion, versionNumber } from './microversions.ts';
import { type Ask, type CallOptions, pathOf } from './operation.ts';

/** The usage of a provider, by resource class. */
export type ProviderUsages = { readonly usages: Resources } & Guarded;

/** Usages by consumer type, each with the number of consumers. */
export type UsagesByType = {
  readonly [consumerType: string]: { readonly consumer_count: number; readonly [resourceClass: string]: number };
};

/** The usage of a project: from 1.38 on by consumer type and class, before that only by class. */
export type ProjectUsages<Version extends Microversion = Microversion> =
  Version extends From<'1.38'> ? UsagesByType : Resources;

/** Whose usage to read: a project, and optionally a user and a consumer type. */
export type UsageQuery = {
  readonly project_id: string;
  readonly user_id?: string | undefined;
  /** A type, `all` (the sum of all types) or `unknown` (consumers without a type). From 1.38. */
  readonly consumer_type?: string | undefined;
};

/** Calls about the usage of a provider and of a project. */
export type UsageCalls<Version extends Microversion> = {
  ofProvider(provider: string, options?: CallOptions): Promise<ProviderUsages>;
  /** From 1.9 on. */
  ofProject(query: UsageQuery, options?: CallOptions): Promise<ProjectUsages<Version>>;
};

const ofProjectSince = versionNumber('1.9');
const byTypeSince = versionNumber('1.38');

/** Makes the calls about usages. */
export function usageCalls<Version extends Microversion>(ask: Ask): UsageCalls<Version> {
  return {
    ofProvider: (provider, options) =>
      ask({ method: 'GET', path: pathOf('resource_providers', provider, 'usages') }, options),
    ofProject: async ({ project_id, user_id, consumer_type }, options) => {
      const query = [
        ...optional('project_id', project_id),
        ...optional('user_id', user_id),
        ...optional('consumer_type', consumer_type, byTypeSince),
      ];
      const operation = { method: 'GET', path: pathOf('usages'), since: ofProjectSince, query } as const;
      return (await ask<{ usages: ProjectUsages<Version> }>(operation, options)).usages;
    },
  };
}

/**
 * Distinguishes the two forms of a project's usages if the version is negotiated. Empty usages count as the form by type.
 */
export const isByType = (usages: Resources | UsagesByType): usages is UsagesByType =>
  Object.values(usages).every((value) => typeof value === 'object');

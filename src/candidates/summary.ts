import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import type { Provider } from '../fleet/provider.ts';
import { capacity } from '../placement/inventory.ts';
import { exactNumber } from '../schema/exact_number.ts';
import type { CandidateRequest } from './request.ts';

/** Microversions that added to the summary of a provider. */
const since = { traits: 17, allResources: 27, nested: 29 } as const;

/**
 * The summary of a provider as a member of a JSON object. From 1.29 on it depends on the provider alone, and is kept with it
 * until the provider changes.
 */
export function summaryText(fleet: Fleet, provider: Provider, request: CandidateRequest, version: number): string {
  if (version < since.nested)
    return `"${provider.uuid}": ${JSON.stringify(summary(fleet, provider, request, version))}`;
  provider.summaryText ??= `"${provider.uuid}": ${JSON.stringify(summary(fleet, provider, request, version))}`;
  return provider.summaryText;
}

function summary(fleet: Fleet, provider: Provider, request: CandidateRequest, version: number) {
  const requested = new Set(request.groups.flatMap(({ resources }) => [...resources.keys()]));
  const resources: Record<string, { capacity: unknown; used: number }> = {};
  for (const inventory of provider.inventories) {
    const name = nameOf(fleet.classes, inventory.classId);
    if (version < since.allResources && !requested.has(name)) continue;
    resources[name] = { capacity: exactNumber(capacity(inventory)), used: inventory.used };
  }
  return {
    resources,
    ...(version >= since.traits ? { traits: provider.traitIds.map((id) => nameOf(fleet.traits, id)) } : {}),
    ...(version >= since.nested
      ? { parent_provider_uuid: provider.parent?.uuid ?? null, root_provider_uuid: provider.root.uuid }
      : {}),
  };
}

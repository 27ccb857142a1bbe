import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import type { Provider } from '../fleet/provider.ts';
import { capacity } from '../placement/inventory.ts';
import { exactNumber } from '../schema/exact_number.ts';
import { asciiJson } from './json_chunks.ts';
import type { CandidateRequest } from './request.ts';

/** Microversions that added to the summary of a provider. */
const since = { traits: 17, allResources: 27, nested: 29 } as const;

/**
 * The summary of a provider as a member of a JSON object. From 1.29 on it depends on the provider alone, and is kept with it
 * until the provider changes.
 */
export function summaryBytes(fleet: Fleet, provider: Provider, request: CandidateRequest, version: number): Buffer {
  const bytes = (): Buffer => {
    const text = `"${provider.uuid}": ${asciiJson(summary(fleet, provider, request, version))}`;
    return Buffer.from(text, 'latin1');
  };
  if (version < since.nested) return bytes();
  provider.summary ??= bytes();
  return provider.summary;
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

import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import { findingsOf, type Provider, treeOf } from '../fleet/provider.ts';
import { capacity } from '../placement/inventory.ts';
import { exactNumber } from '../rest/exact_number.ts';
import { since } from '../rest/microversions.ts';
import { asciiJson } from '../text/ascii_json.ts';
import type { CandidateRequest } from './request.ts';

/** The summary of a provider as a member of a JSON object, up to 1.28. */
export const summaryText = (fleet: Fleet, provider: Provider, request: CandidateRequest, version: number): string =>
  member(provider, summary(fleet, provider, version, requestedClasses(request)));

/**
 * The summaries of a tree as members of a JSON object, with a separator before each, from 1.29 on. They depend only on
 * the tree, and are cached with it until something in the tree changes.
 */
export function treeSummary(fleet: Fleet, root: Provider): Buffer {
  const findings = findingsOf(root);
  findings.summary ??= Buffer.from(
    treeOf(root)
      .map((provider) => `, ${member(provider, summary(fleet, provider, since.nestedCandidates))}`)
      .join(''),
    'latin1',
  );
  return findings.summary;
}

const member = ({ uuidText }: Provider, value: unknown): string => `"${uuidText}": ${asciiJson(value)}`;

const requestedClasses = ({ groups }: CandidateRequest): ReadonlySet<string> =>
  new Set(groups.flatMap(({ resources }) => [...resources.keys()]));

function summary(fleet: Fleet, provider: Provider, version: number, requested?: ReadonlySet<string>) {
  const resources: Record<string, { capacity: unknown; used: number }> = {};
  for (const inventory of provider.inventories) {
    const name = nameOf(fleet.classes, inventory.fields.classId);
    if (version < since.allResources && !requested?.has(name)) continue;
    resources[name] = { capacity: exactNumber(capacity(inventory.fields)), used: inventory.used };
  }
  return {
    resources,
    ...(version >= since.candidateTraits ? { traits: provider.traitIds.map((id) => nameOf(fleet.traits, id)) } : {}),
    ...(version >= since.nestedCandidates
      ? { parent_provider_uuid: provider.parent?.uuid ?? null, root_provider_uuid: provider.root.uuid }
      : {}),
  };
}

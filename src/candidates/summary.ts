import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import { findingsOf, type Provider, treeOf } from '../fleet/provider.ts';
import { capacity } from '../placement/inventory.ts';
import { since } from '../rest/microversions.ts';
import { exactNumber } from '../rest/python_numbers.ts';
import { asciiJson } from '../text/ascii_json.ts';
import type { CandidateRequest } from './request.ts';

/** The names of traits and resource classes at the moment of an answer. */
type NamesOfMoment = Pick<Fleet, 'traits' | 'classes'>;

/** The summary of a provider as a member of a JSON object, up to 1.28. */
export const summaryText = (
  names: NamesOfMoment,
  provider: Provider,
  request: CandidateRequest,
  version: number,
): string => member(provider, summary(names, provider, version, requestedClasses(request)));

/**
 * The summaries of a tree as members of a JSON object, with a separator before each, from 1.29 on. They depend only on
 * the tree, and are cached with it until something in the tree changes.
 *
 * @param names if they are no longer those of the fleet, nothing is cached, as for a tree that the fleet has no more
 */
export function treeSummary(fleet: Fleet, names: NamesOfMoment, root: Provider): Buffer {
  const hasNames = names.traits === fleet.traits && names.classes === fleet.classes;
  const cached = hasNames ? root.findings?.summary : undefined;
  if (cached !== undefined) return cached;
  const text = Buffer.from(
    treeOf(root)
      .map((provider) => `, ${member(provider, summary(names, provider, since.nestedCandidates))}`)
      .join(''),
    'latin1',
  );
  if (hasNames && fleet.byId.get(root.id) === root) findingsOf(root).summary = text;
  return text;
}

const member = ({ uuidText }: Provider, value: unknown): string => `"${uuidText}": ${asciiJson(value)}`;

const requestedClasses = ({ groups }: CandidateRequest): ReadonlySet<string> =>
  new Set(groups.flatMap(({ resources }) => [...resources.keys()]));

function summary(names: NamesOfMoment, provider: Provider, version: number, requested?: ReadonlySet<string>) {
  const resources: Record<string, { capacity: unknown; used: number }> = {};
  for (const inventory of provider.inventories) {
    const name = nameOf(names.classes, inventory.fields.classId);
    if (version < since.allResources && !requested?.has(name)) continue;
    resources[name] = { capacity: exactNumber(capacity(inventory.fields)), used: inventory.used };
  }
  return {
    resources,
    ...(version >= since.candidateTraits ? { traits: provider.traitIds.map((id) => nameOf(names.traits, id)) } : {}),
    ...(version >= since.nestedCandidates
      ? { parent_provider_uuid: provider.parent?.uuid ?? null, root_provider_uuid: provider.root.uuid }
      : {}),
  };
}

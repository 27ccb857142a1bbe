import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import type { Provider } from '../fleet/provider.ts';
import { type Candidate, type Choice, providerOf } from './candidate.ts';
import type { CandidateRequest } from './request.ts';
import { summaryText } from './summary.ts';

/** Microversions that changed how candidates are shown. */
const since = { byProvider: 12, mappings: 34, nested: 29 } as const;

/**
 * Generates the JSON of the answer, piece by piece: the candidates as they are found, and then the summaries of the providers
 * they need. It is written as text from the start, since most of it repeats what was written before.
 */
export function* candidatesJson(
  fleet: Fleet,
  request: CandidateRequest,
  candidates: Iterable<Candidate>,
  version: number,
): Generator<string> {
  const write = version >= since.byProvider ? writeByProvider(fleet, version >= since.mappings) : writeListed(fleet);
  // From 1.29 on a summary stands for every provider of a tree of which anything is used, so its root is noted.
  const wholeTrees = version >= since.nested;
  const summarised = new Set<Provider>();
  yield '{"allocation_requests": [';
  let separator = '';
  for (const candidate of candidates) {
    yield separator + write(candidate);
    separator = ', ';
    for (const { group, providers } of candidate) {
      if (group.resources.length === 0) continue;
      for (const provider of providers) summarised.add(wholeTrees ? provider.root : provider);
    }
  }
  yield '], "provider_summaries": {';
  separator = '';
  for (const noted of summarised) {
    for (const provider of wholeTrees ? noted.tree : [noted]) {
      yield separator + summaryText(fleet, provider, request, version);
      separator = ', ';
    }
  }
  yield '}}';
}

/** What a candidate takes of each provider, by class: of a class that several groups ask for, the sum. */
function resourcesByProvider(candidate: Candidate): Map<Provider, Map<number, number>> {
  const byProvider = new Map<Provider, Map<number, number>>();
  for (const choice of candidate) {
    for (const [place, { classId, amount }] of choice.group.resources.entries()) {
      const provider = providerOf(choice, place);
      if (provider === undefined) continue;
      let resources = byProvider.get(provider);
      if (resources === undefined) {
        resources = new Map();
        byProvider.set(provider, resources);
      }
      resources.set(classId, (resources.get(classId) ?? 0) + amount);
    }
  }
  return byProvider;
}

/** Texts of `{"VCPU": 1, ...}`: the same few amounts recur in most candidates. */
function resourceTexts(fleet: Fleet): (resources: ReadonlyMap<number, number>) => string {
  const names = new Map<number, string>();
  const nameText = (classId: number): string => {
    let text = names.get(classId);
    if (text === undefined) {
      text = JSON.stringify(nameOf(fleet.classes, classId));
      names.set(classId, text);
    }
    return text;
  };
  return (resources) => {
    let text = '';
    for (const [classId, amount] of resources) text += `${text === '' ? '' : ', '}${nameText(classId)}: ${amount}`;
    return `{"resources": {${text}}`;
  };
}

const isOfOne = ({ providers }: Choice): boolean => providers.every((provider) => provider === providers[0]);

/** From 1.12 on: an object by provider, in the form of PUT /allocations, with the mappings from 1.34 on. */
function writeByProvider(fleet: Fleet, withMappings: boolean): (candidate: Candidate) => string {
  const resourcesText = resourceTexts(fleet);
  /** The candidates that take one group's resources from one provider all take the same. */
  const ofOneProvider = (group: Choice['group']): string => {
    const resources = group.resources.map(({ classId, amount }) => [classId, amount] as const);
    return `": ${resourcesText(new Map(resources))}}}`;
  };
  let lone: { readonly group: Choice['group']; readonly text: string } | undefined;
  return (candidate) => {
    const [first] = candidate;
    if (candidate.length === 1 && first !== undefined && isOfOne(first)) {
      if (lone?.group !== first.group) lone = { group: first.group, text: ofOneProvider(first.group) };
      const uuid = first.providers[0]?.uuid;
      const mappings = withMappings ? `, "mappings": {"${first.group.suffix}": ["${uuid}"]}` : '';
      return `{"allocations": {"${uuid}${lone.text}${mappings}}`;
    }
    let allocations = '';
    for (const [provider, resources] of resourcesByProvider(candidate)) {
      allocations += `${allocations === '' ? '' : ', '}"${provider.uuid}": ${resourcesText(resources)}}`;
    }
    if (!withMappings) return `{"allocations": {${allocations}}}`;
    let mappings = '';
    for (const { group, providers } of candidate) {
      // Suffixes are letters, digits, dashes and underscores, and UUIDs are UUIDs: nothing needs escaping.
      const uuids = [...new Set(providers)].map(({ uuid }) => `"${uuid}"`).join(', ');
      mappings += `${mappings === '' ? '' : ', '}"${group.suffix}": [${uuids}]`;
    }
    return `{"allocations": {${allocations}}, "mappings": {${mappings}}}`;
  };
}

/** Up to 1.11: a list, in the form that PUT /allocations had then. */
function writeListed(fleet: Fleet): (candidate: Candidate) => string {
  const resourcesText = resourceTexts(fleet);
  return (candidate) => {
    const allocations = [...resourcesByProvider(candidate)].map(
      ([provider, resources]) => `${resourcesText(resources)}, "resource_provider": {"uuid": "${provider.uuid}"}}`,
    );
    return `{"allocations": [${allocations.join(', ')}]}`;
  };
}

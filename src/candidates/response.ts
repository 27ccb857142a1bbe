import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import type { Provider } from '../fleet/provider.ts';
import { type Candidate, type Choice, providerOf } from './candidate.ts';
import { asciiJson, type JsonChunks, jsonChunks } from './json_chunks.ts';
import type { CandidateRequest } from './request.ts';
import { summaryBytes } from './summary.ts';

/** Microversions that changed how candidates are shown. */
const since = { byProvider: 12, mappings: 34, nested: 29 } as const;

/**
 * Generates the JSON of the answer, chunk by chunk: the candidates as they are found, and then the summaries of the providers
 * they need. It is written as bytes from the start, since most of it repeats what was written before.
 */
export function* candidatesJson(
  fleet: Fleet,
  request: CandidateRequest,
  candidates: Iterable<Candidate>,
  version: number,
): Generator<string> {
  const chunks = jsonChunks();
  const write =
    version >= since.byProvider
      ? writeByProvider(fleet, chunks, version >= since.mappings)
      : writeListed(fleet, chunks);
  // From 1.29 on a summary stands for every provider of a tree of which anything is used, so its root is noted.
  const wholeTrees = version >= since.nested;
  const summarised = new Set<Provider>();
  const note = (provider: Provider): void => {
    summarised.add(wholeTrees ? provider.root : provider);
  };
  let separator = '{"allocation_requests": [';
  for (const candidate of candidates) {
    chunks.text(separator);
    separator = ', ';
    const lone = loneProvider(candidate);
    write(candidate, lone);
    if (lone !== undefined) note(lone);
    else for (const { group, providers } of candidate) if (group.resources.length > 0) providers.forEach(note);
    if (chunks.isFull) yield chunks.take();
  }
  chunks.text(separator === ', ' ? ']' : `${separator}]`);
  separator = ', "provider_summaries": {';
  for (const root of summarised) {
    for (const provider of wholeTrees ? root.tree : [root]) {
      chunks.text(separator);
      chunks.bytes(summaryBytes(fleet, provider, request, version));
      separator = ', ';
    }
    if (chunks.isFull) yield chunks.take();
  }
  chunks.text(separator === ', ' ? '}}' : `${separator}}}`);
  yield chunks.take();
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

/** Writes a candidate, of which the lone provider is known if it has one. */
type Writer = (candidate: Candidate, lone: Provider | undefined) => void;

/** Texts of `{"VCPU": 1, ...}`: the same few amounts recur in most candidates. */
function resourceTexts(fleet: Fleet): (resources: ReadonlyMap<number, number>) => string {
  const names = new Map<number, string>();
  const nameText = (classId: number): string => {
    let text = names.get(classId);
    if (text === undefined) {
      text = asciiJson(nameOf(fleet.classes, classId));
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

/** The provider of a candidate that takes all from one, for one group. */
function loneProvider(candidate: Candidate): Provider | undefined {
  const [first] = candidate;
  if (candidate.length > 1 || first === undefined || first.group.resources.length === 0) return undefined;
  const { providers } = first;
  for (let place = 1; place < providers.length; place++) if (providers[place] !== providers[0]) return undefined;
  return providers[0];
}

/** From 1.12 on: an object by provider, in the form of PUT /allocations, with the mappings from 1.34 on. */
function writeByProvider(fleet: Fleet, chunks: JsonChunks, withMappings: boolean): Writer {
  const resourcesText = resourceTexts(fleet);
  /** Candidates that take one group's resources from one provider differ by its UUID only: this is before and behind it. */
  const partsOf = ({ resources, suffix }: Choice['group']): readonly Buffer[] => {
    const text = resourcesText(new Map(resources.map(({ classId, amount }) => [classId, amount])));
    const parts = withMappings
      ? ['{"allocations": {"', `": ${text}}}, "mappings": {"${suffix}": ["`, '"]}}']
      : ['{"allocations": {"', `": ${text}}}}`];
    return parts.map((part) => Buffer.from(part, 'latin1'));
  };
  let kept: { readonly group: Choice['group']; readonly parts: readonly Buffer[] } | undefined;
  return (candidate, lone) => {
    const [first] = candidate;
    if (lone !== undefined && first !== undefined) {
      if (kept?.group !== first.group) kept = { group: first.group, parts: partsOf(first.group) };
      const [before, between, behind] = kept.parts;
      if (before !== undefined) chunks.bytes(before);
      chunks.text(lone.uuid);
      if (between !== undefined) chunks.bytes(between);
      if (behind === undefined) return;
      chunks.text(lone.uuid);
      chunks.bytes(behind);
      return;
    }
    let separator = '{"allocations": {';
    for (const [of, resources] of resourcesByProvider(candidate)) {
      chunks.text(`${separator}"${of.uuid}": ${resourcesText(resources)}}`);
      separator = ', ';
    }
    if (!withMappings) {
      chunks.text('}}');
      return;
    }
    separator = '}, "mappings": {';
    for (const { group, providers } of candidate) {
      // Suffixes are letters, digits, dashes and underscores, and UUIDs are UUIDs: nothing needs escaping.
      const uuids = [...new Set(providers)].map(({ uuid }) => `"${uuid}"`).join(', ');
      chunks.text(`${separator}"${group.suffix}": [${uuids}]`);
      separator = ', ';
    }
    chunks.text('}}');
  };
}

/** Up to 1.11: a list, in the form that PUT /allocations had then. */
function writeListed(fleet: Fleet, chunks: JsonChunks): Writer {
  const resourcesText = resourceTexts(fleet);
  return (candidate) => {
    const allocations = [...resourcesByProvider(candidate)].map(
      ([provider, resources]) => `${resourcesText(resources)}, "resource_provider": {"uuid": "${provider.uuid}"}}`,
    );
    chunks.text(`{"allocations": [${allocations.join(', ')}]}`);
  };
}

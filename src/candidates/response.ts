import type { Fleet } from '../fleet/fleet.ts';
import type { Provider } from '../fleet/provider.ts';
import type { Candidate, Choice } from './candidate.ts';
import { allocationsText, choiceTexts, resourcesByProvider, resourceTexts } from './choice_text.ts';
import { type JsonChunks, jsonChunks, separator } from './json_chunks.ts';
import { loneCandidates, loneProvider } from './lone_candidates.ts';
import type { CandidateRequest } from './request.ts';
import { summaryText, treeSummary } from './summary.ts';

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
): Generator<Uint8Array<ArrayBuffer>> {
  const chunks = jsonChunks();
  const write =
    version >= since.byProvider
      ? writeByProvider(fleet, chunks, version >= since.mappings)
      : writeListed(fleet, chunks);
  // From 1.29 on a summary stands for every provider of a tree of which anything is used, so its root is noted.
  const wholeTrees = version >= since.nested;
  const summarised = new Set<Provider>();
  let noted: Provider | undefined;
  const note = (provider: Provider): void => {
    const shown = wholeTrees ? provider.root : provider;
    if (shown !== noted) summarised.add(shown);
    noted = shown;
  };
  const noteAll = ({ group, providers }: Choice): void => {
    if (group.resources.length > 0) for (const provider of providers) note(provider);
  };
  let before = '{"allocation_requests": [';
  for (const candidate of candidates) {
    const lone = loneProvider(candidate);
    write(before, candidate, lone);
    before = separator;
    if (lone !== undefined) note(lone);
    else for (const choice of candidate) noteAll(choice);
    if (chunks.isFull) yield chunks.take();
  }
  chunks.text(`${before === separator ? '' : before}], "provider_summaries": {`);
  before = '';
  for (const provider of summarised) {
    if (wholeTrees && provider.root !== provider) {
      // It got a parent while chunks were sent, so that its tree is that one's now, who comes yet.
      summarised.add(provider.root);
      continue;
    }
    if (wholeTrees) chunks.bytes(treeSummary(fleet, provider), before === '' ? separator.length : 0);
    else chunks.text(before + summaryText(fleet, provider, request, version));
    before = separator;
    if (chunks.isFull) yield chunks.take();
  }
  chunks.text('}}');
  yield chunks.take();
}

/** Writes a text and a candidate, of which the lone provider is known if it has one. */
type Writer = (before: string, candidate: Candidate, lone: Provider | undefined) => void;

/** From 1.12 on: an object by provider, in the form of PUT /allocations, with the mappings from 1.34 on. */
function writeByProvider(fleet: Fleet, chunks: JsonChunks, withMappings: boolean): Writer {
  const resourcesText = resourceTexts(fleet);
  const { groupText, shown } = choiceTexts(resourcesText);
  const lones = loneCandidates(chunks, (group) => {
    const text = groupText(group);
    return withMappings
      ? ['{"allocations": {"', `": ${text}}}, "mappings": {"${group.suffix}": ["`, '"]}}']
      : ['{"allocations": {"', `": ${text}}}}`];
  });
  return (before, candidate, lone) => {
    const [first] = candidate;
    if (lone !== undefined && first !== undefined) {
      lones.write(before, first.group, lone);
      return;
    }
    lones.interrupt();
    let allocations = '';
    if (areApart(candidate)) {
      for (const choice of candidate) {
        const more = shown(choice).allocations;
        if (more !== '') allocations += allocations === '' ? more : `, ${more}`;
      }
    } else {
      allocations = allocationsText(resourcesByProvider(candidate), resourcesText);
    }
    if (!withMappings) {
      chunks.text(`${before}{"allocations": {${allocations}}}`);
      return;
    }
    let mappings = '';
    for (const choice of candidate) {
      const { mapping } = shown(choice);
      mappings += mappings === '' ? mapping : `, ${mapping}`;
    }
    chunks.text(`${before}{"allocations": {${allocations}}, "mappings": {${mappings}}}`);
  };
}

/** Whether no two groups take something of the same provider, so that nothing is to be added up. */
function areApart(candidate: Candidate): boolean {
  for (let place = 1; place < candidate.length; place++) {
    for (let other = 0; other < place; other++) {
      const [a, b] = [candidate[place], candidate[other]];
      if (a === undefined || b === undefined || a.group.resources.length === 0 || b.group.resources.length === 0)
        continue;
      for (const provider of a.providers) if (b.providers.includes(provider)) return false;
    }
  }
  return true;
}

/** Up to 1.11: a list, in the form that PUT /allocations had then. */
function writeListed(fleet: Fleet, chunks: JsonChunks): Writer {
  const resourcesText = resourceTexts(fleet);
  return (before, candidate) => {
    const allocations = [...resourcesByProvider(candidate)].map(
      ([provider, resources]) => `${resourcesText(resources)}, "resource_provider": {"uuid": "${provider.uuid}"}}`,
    );
    chunks.text(`${before}{"allocations": [${allocations.join(', ')}]}`);
  };
}

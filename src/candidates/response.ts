import type { Fleet } from '../fleet/fleet.ts';
import type { Provider } from '../fleet/provider.ts';
import type { Candidate } from './candidate.ts';
import { candidateForm } from './candidate_form.ts';
import { candidatePatterns } from './candidate_patterns.ts';
import { jsonChunks, separator } from './json_chunks.ts';
import type { CandidateRequest } from './request.ts';
import { summaryText, treeSummary } from './summary.ts';

/** The microversion that shows whole trees. */
const sinceNested = 29;

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
  // From 1.29 on a summary stands for every provider of a tree of which anything is used, so its root is noted.
  const wholeTrees = version >= sinceNested;
  const summarised = new Set<Provider>();
  let noted: Provider | undefined;
  const note = (provider: Provider): void => {
    const shown = wholeTrees ? provider.root : provider;
    if (shown !== noted) summarised.add(shown);
    noted = shown;
  };
  const bytesOf = candidatePatterns(candidateForm(fleet, version), note);
  let skipped: number = separator.length;
  chunks.text('{"allocation_requests": [');
  for (const candidate of candidates) {
    chunks.bytes(bytesOf(candidate), skipped);
    skipped = 0;
    if (chunks.isFull) yield chunks.take();
  }
  chunks.text('], "provider_summaries": {');
  skipped = separator.length;
  for (const provider of summarised) {
    if (wholeTrees && provider.root !== provider) {
      // It got a parent while chunks were sent, so that its tree is that one's now, who comes yet.
      summarised.add(provider.root);
      continue;
    }
    if (wholeTrees) chunks.bytes(treeSummary(fleet, provider), skipped);
    else chunks.text(separator.slice(skipped) + summaryText(fleet, provider, request, version));
    skipped = 0;
    if (chunks.isFull) yield chunks.take();
  }
  chunks.text('}}');
  yield chunks.take();
}

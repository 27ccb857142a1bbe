import type { Fleet } from '../fleet/fleet.ts';
import type { Provider } from '../fleet/provider.ts';
import { since } from '../rest/microversions.ts';
import type { Candidate } from './candidate.ts';
import { candidateForm } from './candidate_form.ts';
import { candidatePatterns } from './candidate_patterns.ts';
import { jsonWriter, separator } from './json_writer.ts';
import type { CandidateRequest } from './request.ts';
import { summaryText, treeSummary } from './summary.ts';

/**
 * Generates the JSON of the answer in chunks: the candidates as they are found, then the summaries of the providers
 * that they use. It is written as bytes and not as strings, since most of it is copied from what was written before.
 */
export function* candidatesJson(
  fleet: Fleet,
  request: CandidateRequest,
  candidates: Iterable<Candidate>,
  version: number,
): Generator<Uint8Array<ArrayBuffer>> {
  const json = jsonWriter();
  // From 1.29 on: the trees that candidates use, each with its summaries as they were when it was found. While chunks
  // are sent, a provider may be deleted or move to another tree: a changed tree has another list of its providers.
  const trees = new Map<Provider | Provider['tree'], Buffer>();
  const providers = new Set<Provider>();
  let noted: Provider | Provider['tree'] | undefined;
  const noteTree = ({ root }: Provider): void => {
    const tree = root.tree.length === 0 ? root : root.tree;
    if (tree !== noted && !trees.has(tree)) trees.set(tree, treeSummary(fleet, root));
    noted = tree;
  };
  const note = version >= since.nestedCandidates ? noteTree : (provider: Provider) => providers.add(provider);
  const bytesOf = candidatePatterns(candidateForm(fleet, version), note);
  let skipped: number = separator.length;
  json.text('{"allocation_requests": [');
  for (const candidate of candidates) {
    json.bytes(bytesOf(candidate), skipped);
    skipped = 0;
    if (json.isFull()) yield json.take();
  }
  json.text('], "provider_summaries": {');
  skipped = separator.length;
  for (const summaries of trees.values()) {
    json.bytes(summaries, skipped);
    skipped = 0;
    if (json.isFull()) yield json.take();
  }
  for (const provider of providers) {
    json.text(separator.slice(skipped) + summaryText(fleet, provider, request, version));
    skipped = 0;
    if (json.isFull()) yield json.take();
  }
  json.text('}}');
  yield json.take();
}

import type { Fleet } from '../fleet/fleet.ts';
import type { Provider } from '../fleet/provider.ts';
import type { ChunkMaker } from '../rest/json_body.ts';
import { since } from '../rest/microversions.ts';
import type { Turns } from '../rest/pieces.ts';
import type { Candidate } from './candidate.ts';
import { candidateForm } from './candidate_form.ts';
import { candidatePatterns } from './candidate_patterns.ts';
import { jsonWriter, separator } from './json_writer.ts';
import type { CandidateRequest } from './request.ts';
import { summaryText, treeSummary } from './summary.ts';

/** After so many rounds (src/rest/pieces.ts) the turns are asked. */
const roundsPerQuestion = 200;

/**
 * What it takes to write a text, in rounds: one or two for the summary of a provider. To make it takes some 30, but each look at the
 * clock takes time too, and comes after some 1.5 ms at the latest.
 */
const roundsOf = ({ length }: Buffer | string): number => length >> 8;

/**
 * Generates the JSON of the answer in chunks: the candidates as they are found, then the summaries of the providers
 * that they use. It is written as bytes and not as strings, since most of it is copied from what was written before.
 *
 * Between two chunks the fleet may change, if its moment is held (src/fleet/held_moments.ts).
 */
export function* candidatesJson(
  fleet: Fleet,
  request: CandidateRequest,
  candidates: Iterable<Candidate | undefined>,
  version: number,
  turns?: Turns,
): ChunkMaker {
  const json = jsonWriter();
  const names = { traits: fleet.traits, classes: fleet.classes };
  // From 1.29 on: the trees that candidates use, by their roots. In the first chunk each with its summaries, which are at hand
  // when its candidates are found; later they are not kept, since a slow client may leave them in memory for long.
  const roots = new Set<Provider>();
  const summaries: Buffer[] = [];
  let keepsSummaries = true;
  const providers = new Set<Provider>();
  let noted: Provider | undefined;
  /** What was written since the turns were asked last. */
  let rounds = 0;
  const noteTree = ({ root }: Provider): void => {
    if (root !== noted && !roots.has(root)) {
      roots.add(root);
      if (keepsSummaries) {
        const summary = treeSummary(fleet, names, root);
        summaries.push(summary);
        rounds += roundsOf(summary);
      }
    }
    noted = root;
  };
  const note = version >= since.nestedCandidates ? noteTree : (provider: Provider) => providers.add(provider);
  const bytesOf = candidatePatterns(candidateForm(names, version), note);
  let skipped: number = separator.length;
  json.text('{"allocation_requests": [');
  for (const candidate of candidates) {
    if (candidate === undefined) {
      if (rounds > 0) turns?.noteResult();
      yield undefined;
      continue;
    }
    json.bytes(bytesOf(candidate), skipped);
    skipped = 0;
    rounds += 1;
    if (rounds > roundsPerQuestion) {
      turns?.noteResult();
      if (turns?.isOver(rounds)) yield undefined;
      rounds = 0;
    }
    if (!json.isFull()) continue;
    yield json.take();
    keepsSummaries = false;
    summaries.length = 0;
  }
  json.text('], "provider_summaries": {');
  skipped = separator.length;
  let written = 0;
  for (const root of roots) {
    const summary = summaries[written++] ?? treeSummary(fleet, names, root);
    json.bytes(summary, skipped);
    skipped = 0;
    rounds += roundsOf(summary);
    if (rounds > roundsPerQuestion) {
      if (turns?.isOver(rounds)) yield undefined;
      rounds = 0;
    }
    if (json.isFull()) yield json.take();
  }
  for (const provider of providers) {
    const summary = summaryText(names, provider, request, version);
    json.text(separator.slice(skipped) + summary);
    skipped = 0;
    if (turns?.isOver(roundsOf(summary))) yield undefined;
    if (json.isFull()) yield json.take();
  }
  json.text('}}');
  yield json.take();
}

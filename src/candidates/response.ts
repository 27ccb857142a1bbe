import type { Fleet } from '../fleet/fleet.ts';
import type { Provider } from '../fleet/provider.ts';
import type { ChunkMaker } from '../rest/json_body.ts';
import { since } from '../rest/microversions.ts';
import { roundsPerLook, type Turns } from '../rest/pieces.ts';
import type { Candidate } from './candidate.ts';
import { candidateForm } from './candidate_form.ts';
import { candidatePatterns } from './candidate_patterns.ts';
import { jsonWriter, separator } from './json_writer.ts';
import type { CandidateRequest } from './request.ts';
import { summaryText, treeSummary } from './summary.ts';

/** After so many candidates or trees the turns are asked, some 0.5 ms; a pause costs more, as others then write in memory of their own. */
const candidatesPerQuestion = 256;

/** The turns are also asked after so much text of large trees, in bytes: to make it takes up to 2 ms. Texts of small trees do not count. */
const [textPerQuestion, smallText] = [256 * 1024, 4 * 1024];

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
  let latest: Provider | undefined;
  /** The text of large trees since the turns were asked last, in bytes. To count that of all trees takes a twentieth of the time. */
  let ofLarge = 0;
  const noteTree = ({ root }: Provider): void => {
    if (root !== latest && !roots.has(root)) {
      roots.add(root);
      if (keepsSummaries) {
        const summary = treeSummary(fleet, names, root);
        summaries.push(summary);
        if (summary.length > smallText) ofLarge += summary.length;
      }
    }
    latest = root;
  };
  const note = version >= since.nestedCandidates ? noteTree : (provider: Provider) => providers.add(provider);
  const bytesOf = candidatePatterns(candidateForm(names, version), note);
  let skipped: number = separator.length;
  /** How many candidates were written, and how many of them when a result was noted last. */
  let written = 0;
  let noted = 0;
  json.text('{"allocation_requests": [');
  for (const candidate of candidates) {
    if (candidate === undefined) {
      if (written > noted) turns?.noteResult();
      noted = written;
      yield undefined;
      continue;
    }
    json.bytes(bytesOf(candidate), skipped);
    skipped = 0;
    written += 1;
    if (ofLarge > textPerQuestion || written % candidatesPerQuestion === 0) {
      ofLarge = 0;
      noted = written;
      turns?.noteResult();
      if (turns?.isOver(roundsPerLook)) yield undefined;
    }
    if (!json.isFull()) continue;
    yield json.take();
    keepsSummaries = false;
    summaries.length = 0;
  }
  json.text('], "provider_summaries": {');
  skipped = separator.length;
  written = 0;
  for (const root of roots) {
    const summary = summaries[written++] ?? treeSummary(fleet, names, root);
    json.bytes(summary, skipped);
    skipped = 0;
    if (summary.length > smallText) ofLarge += summary.length;
    if (ofLarge > textPerQuestion || written % candidatesPerQuestion === 0) {
      ofLarge = 0;
      if (turns?.isOver(roundsPerLook)) yield undefined;
    }
    if (json.isFull()) yield json.take();
  }
  for (const provider of providers) {
    json.text(separator.slice(skipped) + summaryText(names, provider, request, version));
    skipped = 0;
    written += 1;
    if (written % candidatesPerQuestion === 0 && turns?.isOver(roundsPerLook)) yield undefined;
    if (json.isFull()) yield json.take();
  }
  json.text('}}');
  yield json.take();
}

import type { Provider } from '../fleet/provider.ts';
import type { Candidate } from './candidate.ts';
import type { CandidateForm } from './candidate_form.ts';
import { separator } from './json_chunks.ts';

/**
 * Candidates that share out their groups among providers in the same way differ by UUIDs only: the text is kept, and the
 * UUIDs of the candidate before are overwritten where they differ.
 */
type Pattern = {
  /** For each provider of each choice, in order, which of the candidate's providers it is, by the order of their first mention. */
  readonly shape: readonly number[];
  /** A candidate, with a separator before it. */
  readonly bytes: Buffer;
  /** What stands in it for each of its providers. */
  readonly shown: readonly ShownProvider[];
};

type ShownProvider = {
  uuidText: string | undefined;
  readonly uuidLength: number;
  readonly uuidPlaces: readonly number[];
  /** Whether anything is taken of it. */
  readonly isUsed: boolean;
};

/** Groups can be shared out in very many ways, six of them in 203, each of which takes 2 kB. */
const keptPatterns = 1024;

/**
 * Writes the candidates of one request. For three groups that are kept apart, of which each candidate changes one, it takes a
 * third of the time of joining the text anew.
 *
 * @param note told of every provider of which anything is taken, at least once
 * @returns the JSON of a candidate, with a separator before it, to be copied before the next is asked for
 */
export function candidatePatterns(
  form: CandidateForm,
  note: (provider: Provider) => void,
): (candidate: Candidate) => Uint8Array {
  const patterns = new Map<number, Pattern>();
  let latest: Pattern | undefined;
  /** The providers of the present candidate, by the order of their first mention; behind them may be some of others. */
  const present: Provider[] = [];

  /**
   * Whether a candidate has a pattern; its providers are in `present` then. The loops are plain ones since every candidate
   * passes through them.
   */
  const has = ({ shape, shown }: Pattern, candidate: Candidate): boolean => {
    let mentions = 0;
    let known = 0;
    for (const { providers } of candidate) {
      for (let place = 0; place < providers.length; place++) {
        const provider = providers[place];
        const which = shape[mentions++];
        if (provider === undefined || which === undefined) return false;
        if (which < known) {
          if (present[which] !== provider) return false;
          continue;
        }
        for (let other = 0; other < known; other++) if (present[other] === provider) return false;
        if (shown[which]?.uuidLength !== provider.uuidText.length) return false;
        present[known++] = provider;
      }
    }
    return mentions === shape.length;
  };

  const patternOf = (candidate: Candidate): Pattern => {
    if (latest !== undefined && has(latest, candidate)) return latest;
    const hash = shapeHash(candidate);
    const known = patterns.get(hash);
    if (known !== undefined && has(known, candidate)) return known;
    const added = newPattern(form, candidate);
    if (patterns.size >= keptPatterns) patterns.clear();
    patterns.set(hash, added);
    has(added, candidate);
    return added;
  };

  return (candidate) => {
    latest = patternOf(candidate);
    const { bytes, shown } = latest;
    for (let which = 0; which < shown.length; which++) {
      const provider = present[which];
      const there = shown[which];
      if (provider === undefined || there === undefined || provider.uuidText === there.uuidText) continue;
      if (there.isUsed) note(provider);
      there.uuidText = provider.uuidText;
      for (const place of there.uuidPlaces) bytes.write(provider.uuidText, place, 'latin1');
    }
    return bytes;
  };
}

/** A number that all candidates of a pattern have in common, and those of two hardly ever. */
function shapeHash(candidate: Candidate): number {
  let hash = 0;
  for (const { providers } of candidate) {
    for (const provider of providers) {
      hash = (Math.imul(hash, 31) + firstMention(candidate, provider) + provider.uuidText.length) | 0;
    }
  }
  return hash;
}

function firstMention(candidate: Candidate, provider: Provider): number {
  let before = 0;
  for (const { providers } of candidate) {
    const place = providers.indexOf(provider);
    if (place !== -1) return before + place;
    before += providers.length;
  }
  return before;
}

/** The pattern of a candidate; what stands in it is overwritten as if it were another's. */
function newPattern(form: CandidateForm, candidate: Candidate): Pattern {
  const mentions = candidate.flatMap(({ providers }) => providers);
  const present = [...new Set(mentions)];
  const used = new Set(candidate.flatMap(({ group, providers }) => (group.resources.length > 0 ? providers : [])));
  const placesOf = new Map(present.map((provider): [Provider, number[]] => [provider, []]));
  let text: string = separator;
  for (const piece of form(candidate)) {
    if (typeof piece !== 'string') placesOf.get(piece)?.push(text.length);
    text += typeof piece === 'string' ? piece : piece.uuidText;
  }
  return {
    shape: mentions.map((provider) => present.indexOf(provider)),
    bytes: Buffer.from(text, 'latin1'),
    shown: present.map((provider) => ({
      uuidText: undefined,
      uuidLength: provider.uuidText.length,
      uuidPlaces: placesOf.get(provider) ?? [],
      isUsed: used.has(provider),
    })),
  };
}

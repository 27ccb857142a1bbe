import type { Provider } from '../../fleet/model/provider.ts';
import { separator } from '../../rest/json_writer.ts';
import type { Candidate } from '../../search/candidate.ts';
import { Cache } from '../../text/cache.ts';

/**
 * The text of candidates that distribute their groups among providers in the same way. They differ only by UUIDs, so
 * the text is kept, and for the next candidate the UUIDs that differ are overwritten.
 */
type Pattern = {
  /**
   * For each provider of each choice, in order: its number among the candidate's providers, in the order of first
   * mention.
   */
  readonly shape: readonly number[];
  /** The text of the latest candidate, with a separator before it. */
  readonly bytes: Buffer;
  /** What the text has for each provider of that candidate. */
  readonly shown: readonly ShownProvider[];
};

type ShownProvider = {
  /** Undefined in a new pattern, so that the provider of the first candidate is noted too. */
  uuidText: string | undefined;
  readonly uuidLength: number;
  readonly uuidPlaces: readonly number[];
  /** Whether the candidate takes an amount of it. */
  readonly isUsed: boolean;
};

/**
 * How many patterns are kept, each in 2 kB. There may be very many: six groups can be distributed among providers in
 * 203 ways.
 */
const keptPatterns = 1024;

/**
 * Writes the candidates of one request. With three isolated groups, of which one changes from candidate to candidate,
 * it takes a third of the time of joining the text for each candidate.
 *
 * @param note called with each provider of which a candidate takes an amount, at least once
 * @returns a function that writes a candidate as JSON, with a separator before it. The caller must copy the bytes
 *   before the next call.
 */
export function candidatePatterns(
  form: CandidateForm,
  note: (provider: Provider) => void,
): (candidate: Candidate) => Uint8Array {
  const patterns = new Cache<number, Pattern>(keptPatterns);
  let latest: Pattern | undefined;
  /**
   * The providers of the present candidate, in the order of first mention. Providers of earlier candidates may follow.
   */
  const present: Provider[] = [];

  /**
   * Whether a candidate has this pattern. If so, its providers are in `present` afterwards. The loops are plain for
   * speed, since they run for every candidate.
   */
  const matches = ({ shape, shown }: Pattern, candidate: Candidate): boolean => {
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
    if (latest !== undefined && matches(latest, candidate)) return latest;
    const hash = shapeHash(candidate);
    const known = patterns.get(hash);
    if (known !== undefined && matches(known, candidate)) return known;
    const added = newPattern(form, candidate);
    patterns.set(hash, added);
    matches(added, candidate);
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

/** A hash: equal for all candidates of a pattern, and mostly different for those of different patterns. */
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

/** A new pattern with the text of a candidate. */
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

/** How a candidate is written: pieces of ASCII text, and the providers whose UUIDs stand between them. */
export type CandidateForm = (candidate: Candidate) => readonly (string | Provider)[];

import type { Provider } from '../fleet/provider.ts';
import type { Candidate, Choice } from './candidate.ts';
import { onlyOne } from './choice_text.ts';
import { type JsonChunks, separator } from './json_chunks.ts';

/** The provider of a candidate that takes all from one, for one group. */
export function loneProvider(candidate: Candidate): Provider | undefined {
  const [first] = candidate;
  if (candidate.length > 1 || first === undefined || first.group.resources.length === 0) return undefined;
  return onlyOne(first.providers);
}

/** Writes candidates that take one group's resources from one provider, which differ by its UUID only. */
export type LoneCandidates = {
  /** @param before what comes before it */
  write(before: string, group: Choice['group'], provider: Provider): void;
  /** To be told when anything else was written. */
  interrupt(): void;
};

/** @param partsOf what is written for a group before, between and behind the places of the UUID; ASCII */
export function loneCandidates(
  chunks: JsonChunks,
  partsOf: (group: Choice['group']) => readonly string[],
): LoneCandidates {
  let kept: { readonly group: Choice['group']; readonly parts: readonly string[] } | undefined;
  /** The one that was written last, if a separator was before it. */
  let last:
    | { readonly length: number; readonly uuidPlaces: readonly number[]; readonly uuidLength: number }
    | undefined;
  return {
    write: (before, group, { uuid }) => {
      if (kept?.group !== group) {
        kept = { group, parts: partsOf(group) };
        last = undefined;
      }
      if (last?.uuidLength === uuid.length && before === separator) {
        if (chunks.again(last.length, last.uuidPlaces, uuid)) return;
      }
      const { parts } = kept;
      const text = before + parts.join(uuid);
      chunks.text(text);
      const uuidPlaces = parts.slice(1).map((_, place) => before.length + parts.slice(0, place + 1).join(uuid).length);
      last = before === separator ? { length: text.length, uuidPlaces, uuidLength: uuid.length } : undefined;
    },
    interrupt: () => {
      last = undefined;
    },
  };
}

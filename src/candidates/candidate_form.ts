import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import type { Provider } from '../fleet/provider.ts';
import { since } from '../rest/microversions.ts';
import { asciiJson } from '../text/ascii_json.ts';
import { type Candidate, takenByProvider } from './candidate.ts';

/** How a candidate is written: pieces of ASCII text, and the providers whose UUIDs stand between them. */
export type CandidateForm = (candidate: Candidate) => readonly (string | Provider)[];

/** How candidates are written at a microversion. */
export function candidateForm(names: Pick<Fleet, 'classes'>, version: number): CandidateForm {
  const takenOf = (candidate: Candidate) => takenTexts(names, candidate);
  // Up to 1.11 a list, in the form that PUT /allocations had then.
  if (version < since.allocationsByProvider) {
    return (candidate) => [
      '{"allocations": [',
      ...listed(takenOf(candidate), ([provider, resources]) => [
        `{"resources": {${resources}}, "resource_provider": {"uuid": "`,
        provider,
        '"}}',
      ]),
      ']}',
    ];
  }
  const allocations = (candidate: Candidate) =>
    listed(takenOf(candidate), ([provider, resources]) => ['"', provider, `": {"resources": {${resources}}}`]);
  if (version < since.mappings) return (candidate) => ['{"allocations": {', ...allocations(candidate), '}}'];
  return (candidate) => [
    '{"allocations": {',
    ...allocations(candidate),
    '}, "mappings": {',
    // Suffixes are letters, digits, dashes and underscores: nothing needs escaping.
    ...listed(candidate, ({ group, providers }) => [
      `"${group.suffix}": [`,
      ...listed([...new Set(providers)], (provider) => ['"', provider, '"']),
      ']',
    ]),
    '}}',
  ];
}

/** What a candidate takes of each provider, as members of a JSON object. */
const takenTexts = (
  { classes }: Pick<Fleet, 'classes'>,
  candidate: Candidate,
): readonly (readonly [Provider, string])[] =>
  Array.from(takenByProvider(candidate), ([provider, ofProvider]) => [
    provider,
    Array.from(ofProvider, ([classId, amount]) => `${asciiJson(nameOf(classes, classId))}: ${amount}`).join(', '),
  ]);

/** The pieces of all items, with a comma between one and the next. */
const listed = <Item>(
  items: readonly Item[],
  piecesOf: (item: Item) => readonly (string | Provider)[],
): readonly (string | Provider)[] =>
  items.flatMap((item, place) => (place === 0 ? piecesOf(item) : [', ', ...piecesOf(item)]));

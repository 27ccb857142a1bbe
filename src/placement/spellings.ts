import { placementService } from './microversions.ts';
import { spellingsOf } from './uuid.ts';
import { isOwn, type Version } from './versions.ts';

/**
 * The texts under which something may be stored that a request names by a UUID. OpenStack's versions look for the text as it was sent;
 * version 2 looks for the usual spelling, too.
 */
export const spellingsAt = (version: Version, sent: string): readonly string[] =>
  isOwn(placementService, version) ? spellingsOf(sent) : [sent];

/** What is stored under the first of some texts that is known. */
export function firstStored<Stored>(byUuid: ReadonlyMap<string, Stored>, texts: readonly string[]): Stored | undefined {
  const known = texts.find((text) => byUuid.has(text));
  return known === undefined ? undefined : byUuid.get(known);
}

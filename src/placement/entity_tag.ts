import { hash } from 'node:crypto';
import type { InventoryFields } from './inventory.ts';

/*
 * Entity tags say what a resource's content is: the SHA-512 of its fields as compact JSON with sorted keys. What the service
 * changes by itself is no content: generations, times, usages. Migration 004 has the same in SQL, for what is stored.
 */

/** `W/"<128 hexadecimal digits>"`: a weak one, since equal tags mean equal content and not equal bytes. */
export type EntityTag = `W/"${string}"`;

const tagOf = (json: string): EntityTag => `W/"${hash('sha512', json, 'hex')}"`;

type Member = readonly [name: string, json: string];

/** Written by hand: objects put keys that look like integers first, and every claim comes by here. */
function objectText(members: Member[]): string {
  if (members.length > 1) members.sort(([a], [b]) => (a < b ? -1 : 1));
  let text = '';
  for (const [name, json] of members) text += `${text === '' ? '{' : ','}${JSON.stringify(name)}:${json}`;
  return text === '' ? '{}' : `${text}}`;
}

const listTag = (texts: readonly string[]): EntityTag => tagOf(JSON.stringify(texts.toSorted()));

/** The tag of a provider itself, without its parts. */
export const providerTag = (provider: {
  readonly uuid: string;
  readonly name: string;
  readonly parentUuid: string | null;
}): EntityTag =>
  tagOf(
    JSON.stringify({ name: provider.name, parent_provider_uuid: provider.parentUuid, uuid: provider.uuid }), // sorted
  );

const inventoryText = (fields: InventoryFields): string =>
  `{"allocation_ratio":${JSON.stringify(fields.allocationRatio)},"max_unit":${fields.maxUnit},"min_unit":${fields.minUnit},` +
  `"reserved":${fields.reserved},"step_size":${fields.stepSize},"total":${fields.total}}`;

/** The tag of one inventory. */
export const inventoryTag = (fields: InventoryFields): EntityTag => tagOf(inventoryText(fields));

/** All inventories of a provider, by class name. */
export const inventoriesTag = (
  inventories: Iterable<readonly [className: string, fields: InventoryFields]>,
): EntityTag => tagOf(objectText(Array.from(inventories, ([name, fields]) => [name, inventoryText(fields)])));

/** The traits of a provider, by name, in any order. */
export const traitsTag = listTag;

/** The aggregates of a provider, as they are spelt, in any order. */
export const aggregatesTag = listTag;

/** How the type of a consumer is shown where none was ever said. */
export const unknownType = 'unknown';

/** What a consumer has, of which provider and class, and whose it is. */
export type ConsumerContent = {
  /** Amounts by class name, by provider UUID; not empty. */
  readonly allocations: ReadonlyMap<string, ReadonlyMap<string, number>>;
  readonly projectId: string;
  readonly userId: string;
  /** Null where none was ever said, which is shown as `unknown`. */
  readonly consumerType: string | null;
};

/** The tag of what a consumer has. */
export function allocationsTag({ allocations, projectId, userId, consumerType }: ConsumerContent): EntityTag {
  const byProvider: Member[] = [];
  for (const [uuid, amounts] of allocations) {
    const resources: Member[] = [];
    for (const [name, used] of amounts) resources.push([name, `${used}`]);
    byProvider.push([uuid, `{"resources":${objectText(resources)}}`]);
  }
  return tagOf(
    `{"allocations":${objectText(byProvider)},"consumer_type":${JSON.stringify(consumerType ?? unknownType)},` +
      `"project_id":${JSON.stringify(projectId)},"user_id":${JSON.stringify(userId)}}`,
  );
}

/** A custom resource class, or a custom trait: its name is all it has. */
export const nameTag = (name: string): EntityTag => tagOf(JSON.stringify({ name }));

/** What an If-Match header asks for: that there is a resource at all, or that its tag is one of these (without `W/` and quotes). */
export type IfMatch = '*' | readonly string[];

/** A tag and what separates it from the next: RFC 9110 (5.6.1.2) lets lists have empty places. */
const listedTag = /[\s,]*(?:W\/)?(?:"([\x21\x23-\x7e\x80-\xff]*)"|([\w-]+))\s*(?:,[\s,]*|$)/gy;

/**
 * Reads an If-Match header: `*`, one tag, or several with commas between; each with or without `W/`, and with or without the
 * quotes, which some clients lose.
 *
 * @returns undefined where it is none of these.
 */
export function parseIfMatch(header: string): IfMatch | undefined {
  const value = header.trim();
  if (value === '*') return '*';
  const tags: string[] = [];
  let end = 0;
  for (const [text, quoted, bare] of value.matchAll(listedTag)) {
    tags.push(quoted ?? bare ?? '');
    end += text.length;
  }
  return tags.length > 0 && end === value.length ? tags : undefined;
}

/** The part between the quotes: the weak comparison of RFC 9110 (8.8.3.2) looks at it alone. */
const opaquePart = (tag: EntityTag): string => tag.slice('W/"'.length, -1);

/** @param tag that of the resource as it is; undefined where there is none, which nothing matches. */
export const isMatch = (ifMatch: IfMatch, tag: EntityTag | undefined): boolean =>
  tag !== undefined && (ifMatch === '*' || ifMatch.includes(opaquePart(tag)));

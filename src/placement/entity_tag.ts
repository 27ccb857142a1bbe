import { hash } from 'node:crypto';
import type { InventoryFields } from './inventory.ts';

/*
 * An entity tag identifies the content of a resource: it is the SHA-512 of its fields as compact JSON with sorted keys.
 * Generations, times and usages, which the service changes by itself, are not content. Migration 004 computes the same
 * in SQL, for the stored tags.
 */

/** `W/"<128 hexadecimal digits>"`: a weak tag, since equal tags mean equal content, not equal bytes. */
export type EntityTag = `W/"${string}"`;

const tagOf = (json: string): EntityTag => `W/"${hash('sha512', json, 'hex')}"`;

type Member = readonly [name: string, json: string];

/**
 * Not JSON.stringify: objects list keys that look like integers first. And every claim calls this, so it must be fast.
 */
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

/** The tag of all inventories of a provider, by class name. */
export const inventoriesTag = (
  inventories: Iterable<readonly [className: string, fields: InventoryFields]>,
): EntityTag => tagOf(objectText(Array.from(inventories, ([name, fields]) => [name, inventoryText(fields)])));

/** The tag of the traits of a provider: their names, in any order. */
export const traitsTag = listTag;

/** The tag of the aggregates of a provider: their UUIDs as they are spelt, in any order. */
export const aggregatesTag = listTag;

/** The type that is shown for a consumer without one. */
export const unknownType = 'unknown';

/** The allocations of a consumer, with its owner and type. */
export type ConsumerContent = {
  /** Amounts by class name, by provider UUID; not empty. */
  readonly allocations: ReadonlyMap<string, ReadonlyMap<string, number>>;
  readonly projectId: string;
  readonly userId: string;
  /** Null if the consumer has no type, which is shown as `unknown`. */
  readonly consumerType: string | null;
};

/** The allocations of a consumer in the form of `ConsumerContent`. */
export function amountsByProvider(
  allocations: Iterable<readonly [providerUuid: string, className: string, used: number]>,
): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const byProvider = new Map<string, Map<string, number>>();
  for (const [provider, className, used] of allocations) {
    const amounts = byProvider.get(provider);
    if (amounts === undefined) byProvider.set(provider, new Map([[className, used]]));
    else amounts.set(className, used);
  }
  return byProvider;
}

/** The tag of the allocations of a consumer. */
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

/** The tag of a custom resource class or a custom trait, whose only content is its name. */
export const nameTag = (name: string): EntityTag => tagOf(JSON.stringify({ name }));

type LimitTexts = Readonly<Record<string, number | null>>;

/** The tag of the limits of a project, or of the defaults: their values. */
export const limitsTag = ({
  consumers,
  resources,
}: {
  readonly consumers: LimitTexts;
  readonly resources: LimitTexts;
}): EntityTag => {
  const text = (values: LimitTexts) => objectText(Object.entries(values).map(([name, value]) => [name, `${value}`]));
  return tagOf(`{"consumers":${text(consumers)},"resources":${text(resources)}}`);
};

/**
 * What an If-Match header requires: `*`, that the resource exists, or that its tag is one of these (without `W/` and
 * quotes).
 */
export type IfMatch = '*' | readonly string[];

/** A tag and its separator. Lists may have empty elements, by RFC 9110 (5.6.1.2). */
const listedTag = /[\s,]*(?:W\/)?(?:"([\x21\x23-\x7e\x80-\xff]*)"|([\w-]+))\s*(?:,[\s,]*|$)/gy;

/**
 * Reads an If-Match header: `*`, one tag, or several with commas between them; each with or without `W/`, and with or
 * without the quotes, which some clients omit.
 *
 * @returns undefined if the header is none of these.
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

/** The part between the quotes. The weak comparison of RFC 9110 (8.8.3.2) only compares this part. */
const opaquePart = (tag: EntityTag): string => tag.slice('W/"'.length, -1);

/** @param tag the present tag of the resource; undefined if there is none: then the result is false */
export const isMatch = (ifMatch: IfMatch, tag: EntityTag | undefined): boolean =>
  tag !== undefined && (ifMatch === '*' || ifMatch.includes(opaquePart(tag)));

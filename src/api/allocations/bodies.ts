import * as v from 'valibot';
import { classNamePattern, maxInteger } from '../../placement/inventory.ts';
import { since } from '../../placement/microversions.ts';
import {
  boolean,
  integer,
  integerOrNull,
  keyed,
  list,
  object,
  partlyKeyed,
  text,
  uuidText,
} from '../../rest/json_schema.ts';
import { echoedTag } from '../answers.ts';

/** Keys that should be UUIDs; only their length and characters are checked, as in upstream. */
export const uuidKeyPattern = /^[0-9a-fA-F-]{36}$/;

/** The id of a project or of a user. */
export const ownerId = text({ minLength: 1, maxLength: 255 });
const owners = { project_id: ownerId, user_id: ownerId };
const resources = keyed(classNamePattern, integer({ minimum: 1 }), { minProperties: 1 });

/** Up to 1.11 a list of allocations, each with its provider. */
const listed = list(object({ resource_provider: object({ uuid: uuidText }), resources }), { minItems: 1 });

/** From 1.12 on an object by provider, as GET shows it. GET's `generation` may be sent back, and is ignored. */
const byProvider = (minProperties: number) =>
  keyed(uuidKeyPattern, object({ generation: v.optional(integer()), resources }), { minProperties });

const generation = integerOrNull();
/** Upstream's pattern has no anchors: the value of a key is checked if one character of the key matches. */
const mappings = partlyKeyed(/[a-zA-Z0-9_-]/, list(uuidText, { minItems: 1 }), { minProperties: 1 });
const consumerType = text({ pattern: /^[A-Z0-9_]+$/, minLength: 1, maxLength: 255 });
/** A consumer type as GET shows it, which may be sent back: `unknown` for a consumer without a type. */
export const shownConsumerType = text({ pattern: /^([A-Z0-9_]+|unknown)$/, minLength: 1, maxLength: 255 });

const deletable = { allocations: byProvider(0), ...owners };
const guarded = { ...deletable, consumer_generation: generation };
const mapped = { ...guarded, mappings: v.optional(mappings) };
const typed = { ...mapped, consumer_type: consumerType };
/**
 * From 2.1 on the client can send back what it has read: with the field `etag`, and with the type `unknown`, which
 * leaves the type as it is.
 */
const echoing = { ...mapped, consumer_type: shownConsumerType, ...echoedTag };

/**
 * From 2.4 on queries may replace the allocations. They are checked where they are read (claim_requests.ts), since the
 * errors name the consumer.
 */
const placed = { ...echoing, allocations: v.optional(byProvider(0)), candidates: v.optional(v.unknown()) };

/** How long a term lasts, in seconds. The configuration may allow less. */
export const termSeconds = integer({ minimum: 1, maximum: maxInteger, unit: 'seconds' });

/** From 2.6 on GET shows when the term expires. A client may send it back; it is ignored, as the entity tag is. */
export const echoedEnd = { expires_at: v.optional(v.nullable(text())) };

/** From 2.6 on a claim may expire. */
const timed = { ...placed, expires_in: v.optional(termSeconds), ...echoedEnd };

/** From 2.7 on GET shows the names of the providers. A client may send them back; they are ignored. */
const echoedProviders = { resource_providers: v.optional(v.unknown()) };

/**
 * A text that is shown in the middle of other text: without characters of control and of direction, and without separators of lines.
 */
const shownText = (maxLength: number) =>
  text({
    minLength: 1,
    maxLength,
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern forbids control characters
    pattern: /^[^\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]*$/,
    mismatch: 'has a character of control, such as the end of a line, or one that changes the direction of text',
  });

/** The name of a consumer. */
export const consumerName = shownText(255);

/** From 2.9 on a claim may set the name of the consumer; null removes the name. */
export const named = { name: v.optional(v.nullable(consumerName)) };

/** From 2.4 on: nothing is written, and the answer is what it would be. */
export const dryRun = { dry_run: v.optional(boolean()) };

/** A body of POST /allocations from 2.4 on: in addition to the consumers it may have `dry_run`. */
export const besideDryRun = partlyKeyed(/^dry_run$/, boolean());

/** The name of a line. */
export const lineName = shownText(64);

/** From 2.8 on: the line of the project in which a claim waits for its turn. In POST it is a field next to the consumers. */
export const lined = { line: v.optional(lineName) };
export const besideConsumers = object(lined);

/** The body of PUT /allocations/{consumer_uuid}, by the version that introduced it, newest first. */
export const putBodies = [
  { since: since.names, schema: object({ ...timed, ...echoedProviders, ...named, ...dryRun, ...lined }) },
  { since: since.waiting, schema: object({ ...timed, ...echoedProviders, ...dryRun, ...lined }) },
  { since: since.teams, schema: object({ ...timed, ...echoedProviders, ...dryRun }) },
  { since: since.terms, schema: object({ ...timed, ...dryRun }) },
  { since: since.placing, schema: object({ ...placed, ...dryRun }) },
  { since: since.entityTags, schema: object(echoing) },
  { since: since.consumerTypes, schema: object(typed) },
  { since: since.mappings, schema: object(mapped) },
  { since: since.consumerGenerations, schema: object(guarded) },
  { since: since.allocationsByProvider, schema: object({ allocations: byProvider(1), ...owners }) },
  { since: since.requiredOwners, schema: object({ allocations: listed, ...owners }) },
  { since: since.firstVersion, schema: object({ allocations: listed }) },
] as const;

const byConsumer = <Entries extends v.ObjectEntries>(entries: Entries, minProperties: number) =>
  keyed(uuidKeyPattern, object(entries), { minProperties });

/** Several consumers at once, by UUID: the body of POST /allocations, and a part of the body of POST /reshaper. */
export const consumersBodies = (minProperties: number) =>
  [
    {
      since: since.names,
      schema: byConsumer({ ...echoing, ...echoedEnd, ...echoedProviders, ...named }, minProperties),
    },
    { since: since.teams, schema: byConsumer({ ...echoing, ...echoedEnd, ...echoedProviders }, minProperties) },
    { since: since.terms, schema: byConsumer({ ...echoing, ...echoedEnd }, minProperties) },
    { since: since.entityTags, schema: byConsumer(echoing, minProperties) },
    { since: since.consumerTypes, schema: byConsumer(typed, minProperties) },
    { since: since.mappings, schema: byConsumer(mapped, minProperties) },
    { since: since.consumerGenerations, schema: byConsumer(guarded, minProperties) },
    { since: since.severalConsumers, schema: byConsumer(deletable, minProperties) },
  ] as const;

/** The consumers of POST /allocations from 2.4 on, newest first. */
export const placedConsumers = [
  { since: since.names, schema: byConsumer({ ...timed, ...echoedProviders, ...named }, 1) },
  { since: since.teams, schema: byConsumer({ ...timed, ...echoedProviders }, 1) },
  { since: since.terms, schema: byConsumer(timed, 1) },
  { since: since.placing, schema: byConsumer(placed, 1) },
] as const;

/** One consumer in a body, at any version. */
export type ConsumerBody = {
  readonly allocations?:
    | { readonly [providerUuid: string]: { readonly resources: { readonly [className: string]: number } } }
    | readonly {
        readonly resource_provider: { readonly uuid: string };
        readonly resources: { readonly [className: string]: number };
      }[]
    | undefined;
  readonly candidates?: unknown;
  readonly mappings?: unknown;
  readonly project_id?: string | undefined;
  readonly user_id?: string | undefined;
  readonly consumer_generation?: number | null | undefined;
  readonly consumer_type?: string | undefined;
  readonly expires_in?: number | undefined;
  readonly name?: string | null | undefined;
};

import type { ConsumerAllocationRow } from '../../../db/statements/claims/read_allocations.ts';
import type { ConsumerRow, OwnedConsumer } from '../../../db/statements/consumers/consumer_row.ts';
import type { Config } from '../../config/config.ts';
import {
  type ConsumerGenerations,
  goesOn,
  incompleteOwner,
  ownerOr,
  shownGeneration,
} from '../../placement/consumer.ts';
import { allocationsTag, amountsByProvider, type ConsumerContent, unknownType } from '../../placement/entity_tag.ts';
import { since } from '../../placement/microversions.ts';
import { badRequest } from '../../request/errors.ts';
import type { Answer, ApiRequest } from '../../rest/endpoint.ts';
import { timeText } from '../../text/strings.ts';
import { newest } from '../answers.ts';

/** The allocations of a consumer with its project, user and type; undefined where it has no allocations. */
export function contentOf(rows: readonly ConsumerAllocationRow[], config: Config): ConsumerContent | undefined {
  const [first] = rows;
  if (first === undefined) return undefined;
  return {
    allocations: amountsByProvider(
      rows.map(({ provider_uuid, class_name, used }) => [provider_uuid, class_name, used]),
    ),
    ...ownerOr(incompleteOwner(config), { projectId: first.project_id, userId: first.user_id }),
    consumerType: first.consumer_type,
  };
}

/** The generation of a consumer as answers to a request have it. */
export const generationFor = ({ version }: Pick<ApiRequest, 'version'>, consumer: ConsumerGenerations): number | null =>
  shownGeneration(consumer, goesOn(version));

/** The generation of a consumer, as answers have it, from a row of allocations. */
export const generationOfRow = (
  request: Pick<ApiRequest, 'version'>,
  row: { readonly consumer_generation: number | null; readonly former_generations: number },
): number | null =>
  generationFor(request, { generation: row.consumer_generation, formerGenerations: row.former_generations });

/** Checks how long a term of a consumer may last. @throws ApiError 400 */
export function checkTerm(consumer: string, seconds: number, { placement: { maxTerm } }: Config): void {
  if (seconds <= maxTerm) return;
  throw badRequest(
    `Consumer ${consumer}: 'expires_in' may be up to ${maxTerm} seconds here ([placement] max_term). Got: ${seconds}`,
  );
}

/*
 * How a consumer is shown.
 */

/** The path of the list of consumers. */
export const consumersPath = '/consumers';

/** The owner and the type of a consumer as answers have them; of old allocations without a record the configured owner. */
export function ownerOf(consumer: Omit<OwnedConsumer, 'name'>, config: Config) {
  const { projectId, userId } = ownerOr(incompleteOwner(config), consumer);
  return { project_id: projectId, user_id: userId, consumer_type: consumer.consumerType ?? unknownType };
}

/** A consumer as answers have it. */
export function represent(consumer: ConsumerRow, request: ApiRequest, config: Config) {
  const escaped = encodeURIComponent(consumer.uuid);
  return {
    uuid: consumer.uuid,
    ...ownerOf(consumer, config),
    consumer_generation: generationFor(request, consumer),
    created_at: timeText(consumer.created),
    updated_at: timeText(consumer.updated),
    etag: consumer.etag ?? tagOf(consumer, config),
    ...(request.version >= since.terms ? { expires_at: timeText(consumer.expires) } : {}),
    ...(request.version >= since.names ? { name: consumer.name } : {}),
    links: [
      { rel: 'self', href: `${request.prefix}${consumersPath}/${escaped}` },
      { rel: 'allocations', href: `${request.prefix}/allocations/${escaped}` },
    ],
  };
}

/** The tag if none is stored; null if there are no allocations. */
function tagOf({ allocations, ...consumer }: ConsumerRow, config: Config) {
  if (allocations === null) return null;
  const owner = ownerOf(consumer, config);
  return allocationsTag({
    allocations: amountsByProvider(allocations),
    projectId: owner.project_id,
    userId: owner.user_id,
    consumerType: consumer.consumerType,
  });
}

/** When a consumer was last modified, in milliseconds since 1970; undefined if that is not known. */
export const consumerModifiedAtMs = ({ created, updated }: ConsumerRow): number | undefined =>
  (updated ?? created)?.getTime();

/** The answer that shows one consumer. */
export function answerOf(consumer: ConsumerRow, request: ApiRequest, config: Config): Answer {
  const json = represent(consumer, request, config);
  return {
    status: 200,
    json,
    etag: (json.etag ?? undefined) as Answer['etag'], // the stored text was made by allocationsTag, or by the same rules in SQL
    lastModified: newest([consumerModifiedAtMs(consumer)]),
  };
}

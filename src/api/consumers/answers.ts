import type { ConsumerRow } from '../../../db/statements/consumers/consumer_row.ts';
import type { Config } from '../../config/config.ts';
import { allocationsTag, amountsByProvider, unknownType } from '../../placement/entity_tag.ts';
import type { Answer, ApiRequest } from '../../rest/endpoint.ts';
import { since } from '../../rest/microversions.ts';
import { newest } from '../answer_headers.ts';
import { endText, generationFor, incompleteOwner } from './content.ts';

/*
 * How a consumer is shown.
 */

/** The path of the list of consumers. */
export const consumersPath = '/consumers';

/** The owner and the type of a consumer as answers have them; of old allocations without a record the configured owner. */
export const ownerOf = (consumer: Pick<ConsumerRow, 'projectId' | 'userId' | 'consumerType'>, config: Config) => ({
  project_id: consumer.projectId ?? incompleteOwner(config).projectId,
  user_id: consumer.userId ?? incompleteOwner(config).userId,
  consumer_type: consumer.consumerType ?? unknownType,
});

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
    ...(request.version >= since.terms ? { expires_at: endText(consumer.expires) } : {}),
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

/** The database also has infinities. */
const timeText = (time: Date | null): string | null =>
  time === null || Number.isNaN(time.getTime()) ? null : time.toISOString();

/** When a consumer was last modified, in milliseconds since 1970; undefined if that is not known. */
export const consumerModifiedAtMs = ({ created, updated }: ConsumerRow): number | undefined =>
  (updated ?? created)?.getTime();

/** The answer that shows one consumer. */
export function answerOf(consumer: ConsumerRow, request: ApiRequest, config: Config): Answer {
  const json = represent(consumer, request, config);
  return {
    status: 200,
    json,
    etag: (json.etag ?? undefined) as Answer['etag'], // what is stored was made by allocationsTag, or by its twin in SQL
    lastModified: newest([consumerModifiedAtMs(consumer)]),
  };
}

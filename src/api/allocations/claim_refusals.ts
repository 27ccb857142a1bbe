import type { ClaimRefused, InventoryFault, RefusalReason } from '../../claims/claim.ts';
import { since } from '../../placement/microversions.ts';
import { ApiError, badRequest, conflict, type ErrorCode, errorCodes } from '../../request/errors.ts';
import type { ApiRequest } from '../../rest/endpoint.ts';
import { preconditionFailed } from '../answers.ts';

/** The beginning of a sentence about the allocations of a consumer, for errors of If-Match. */
export const allocationsPhrase = (uuid: string): string => `What consumer ${uuid} has`;
const inventoriesPhrase = (uuid: string): string => `What resource provider ${uuid} has`;

/** The words of a refusal that differ between kinds of requests. */
export type ClaimWording = { readonly notFound: string; readonly concurrentUpdate?: string };

/** What a refusal needs of its request: some versions have no code for it. */
export type RefusedRequest = Pick<ApiRequest, 'version' | 'forbidden'>;

/** The error with which a refused claim is answered, by the reason. */
export const refusals: Readonly<
  Record<RefusalReason, (refused: ClaimRefused, request: RefusedRequest, wording: ClaimWording) => ApiError>
> = {
  'not allowed': ({ message: rule, about: { consumer } }, { forbidden }) =>
    forbidden(
      rule,
      consumer === undefined
        ? undefined
        : `Consumer ${consumer} is in use already, and not yours to change: a new claim needs a UUID of its own.`,
    ),
  'unmatched consumer': ({ message: uuid }) => preconditionFailed(allocationsPhrase(uuid)),
  'unmatched inventories': ({ message: uuid }) => preconditionFailed(inventoriesPhrase(uuid)),
  'consumer generation': ({ message, about: { consumer } }) =>
    new ApiError(409, message, {
      code: errorCodes.concurrentUpdate,
      sentence: consumer && generationRemedy(message, consumer),
    }),
  'provider generation': ({ message }) => conflict(message, errorCodes.concurrentUpdate),
  'unknown provider': ({ message }) => badRequest(message),
  'unknown inventory provider': ({ message }) => badRequest(message, errorCodes.providerNotFound),
  'unknown class': ({ message }, _request, { notFound }) => badRequest(`${notFound} ${message}`),
  limit: ({ message }, { version }) => limitRefused(message, version),
  'invalid inventory': ({ message, about: { fault, numbers } }, { version }) => {
    const detail = `Unable to allocate inventory: ${message}`;
    return new ApiError(409, detail, {
      code: fault === undefined || version < since.consumers ? undefined : faultCodes[fault],
      sentence: numbers && `${detail} ${numbers}`,
    });
  },
  'inventory in use': ({ message }) => conflict(`update conflict: ${message}`, errorCodes.inventoryInUse),
  'no candidates': ({ message }) => conflict(message, errorCodes.noCandidates),
  'given up': ({ message }) => badRequest(message),
  'not its turn': ({ message }) => conflict(message, errorCodes.noCandidates),
  'query too wide': ({ message }) => badRequest(message, errorCodes.queryTooWide),
  query: ({ message }) => badRequest(message),
  'concurrent update': ({ message }, _request, { concurrentUpdate }) =>
    conflict(
      `${concurrentUpdate ?? 'Inventory and/or allocations changed while attempting to allocate:'} ${message}`,
      errorCodes.concurrentUpdate,
    ),
};

/** The error for a claim whose path has no UUID. */
export const malformedConsumer = (uuid: string): ApiError => {
  const detail = `Malformed consumer_uuid: ${uuid}`;
  const remedy =
    'Choose one for the consumer; a name that people know it by is the field "name" of the body, from 2.9 on.';
  return new ApiError(400, detail, { sentence: `${detail} is no UUID. ${remedy}` });
};

/** The text from 2.2 on for a consumer generation that is not the present one. In JSON upstream's `None` is null. */
export const generationRemedy = (message: string, consumer: string): string =>
  `${message.replace(/None$/, 'null')}; it is that of consumer ${consumer}. ` +
  'Read it again, and send its generation; null is for a new consumer.';

/** The error for a write that exceeds a limit. Versions before limits have no code for it. */
export const limitRefused = (message: string, version: number): ApiError =>
  new ApiError(403, message, { code: version < since.teams ? errorCodes.undefined : errorCodes.limitExceeded });

/** From 2.2 on; upstream's versions have no codes for these errors. */
const faultCodes: Readonly<Record<InventoryFault, ErrorCode>> = {
  absent: errorCodes.inventoryAbsent,
  constraints: errorCodes.inventoryConstraints,
  capacity: errorCodes.capacityExceeded,
};

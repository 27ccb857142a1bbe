import type { IncomingMessage } from 'node:http';
import type { RefusalReason } from '../../metrics/refusal_reasons.ts';
import { newRequestId, requestIdHeader } from '../request_id.ts';

/** What is wrong with a request, and the answer to it. */
export type Refusal = {
  readonly reason: RefusalReason;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** The refused request, where its head was read. */
  readonly request?: IncomingMessage | undefined;
  /** The code of the error, for the log. */
  readonly cause?: string | undefined;
};

/** A request, or a connection, that was refused before the app got it. What is not known is undefined. */
export type Refused = {
  readonly reason: RefusalReason;
  readonly detail: string;
  readonly cause?: string | undefined;
  /** Those of the answer. */
  readonly requestId?: string | undefined;
  readonly status?: number | undefined;
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly client?: string | undefined;
};

/** The answer to a refused request, in the form of the API's errors. */
export type RefusalAnswer = { readonly headers: Readonly<Record<string, string>>; readonly body: string };

/** Makes the answer to a refused request, with a new id. */
export function answerTo({ status, title, detail }: Refusal, requestId = newRequestId()): RefusalAnswer {
  const explanation =
    status === 400
      ? 'The server could not comply with the request since it is either malformed or otherwise incorrect.'
      : title;
  const body = JSON.stringify({
    errors: [{ status, title, detail: `${explanation}\n\n ${detail}  `, request_id: requestId }],
  });
  return {
    body,
    headers: {
      'content-type': 'application/json',
      'content-length': `${Buffer.byteLength(body)}`,
      [requestIdHeader]: requestId,
    },
  };
}

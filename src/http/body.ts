import type * as v from 'valibot';
import { ApiError, badRequest } from '../rest/errors.ts';
import { messageOf } from '../text/message_of.ts';
import { decodeUtf8 } from '../text/utf8.ts';
import type { Dialect } from './dialect.ts';

/**
 * Reads a request body as JSON and checks it against a schema.
 *
 * @throws ApiError 400 if it is not JSON or does not validate, with the text of the dialect; 413 if it is longer than
 *   `limitBytes`.
 */
export async function readJson<Schema extends v.GenericSchema>(
  request: Request,
  schema: Schema,
  limitBytes: number,
  { malformedBody, checkBody }: Dialect,
): Promise<v.InferOutput<Schema>> {
  const bytes = await readBody(request, limitBytes);
  let value: unknown;
  try {
    value = parseJson(bytes);
  } catch (error) {
    throw badRequest(malformedBody(messageOf(error)));
  }
  return checkBody(value, schema);
}

async function readBody(request: Request, limitBytes: number): Promise<Uint8Array> {
  const tooLong = (): ApiError =>
    new ApiError(413, `The request body may have ${limitBytes} bytes ([oslo_middleware] max_request_body_size).`);
  if (Number(request.headers.get('content-length') ?? 0) > limitBytes) throw tooLong();
  try {
    if (request.headers.has('content-length')) return new Uint8Array(await request.arrayBuffer());
    // A body without a Content-Length is counted while it arrives.
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of request.body ?? []) {
      length += chunk.byteLength;
      if (length > limitBytes) throw tooLong();
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    // The client closed the connection, was too slow, or sent malformed chunks. In the last two cases the server has
    // answered already.
    throw badRequest('The request body did not arrive whole.');
  }
}

/** @throws an error whose message says why the bytes are not JSON */
function parseJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = decodeUtf8(bytes);
  } catch {
    throw new Error('the body is not valid UTF-8.');
  }
  return JSON.parse(text);
}

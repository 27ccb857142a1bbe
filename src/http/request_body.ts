import * as v from 'valibot';
import { ApiError, badRequest } from '../request/errors.ts';
import { atOnce, inPieces, type Turns } from '../request/turns.ts';
import { checkInPieces, parseLongJson } from '../rest/long_bodies.ts';
import { messageOf } from '../text/print.ts';
import { decodeUtf8 } from '../text/strings.ts';
import type { Dialect } from './dialect.ts';

/** The JSON body of a request. */
export type JsonBody = {
  /**
   * Reads the body, and checks it against a schema.
   *
   * @throws ApiError 400 if it is not JSON or does not validate, with the text of the dialect; 413 if it is longer than `limitBytes`.
   */
  read<Schema extends v.GenericSchema>(schema: Schema): Promise<v.InferOutput<Schema>>;
  /** The text that `read` has read. */
  text(): string;
  /** Checks what was made of the body. @throws ApiError 400 as `read` */
  check<Schema extends v.GenericSchema>(value: unknown, schema: Schema): Promise<v.InferOutput<Schema>>;
};

/** A body up to this length is parsed and checked at once, which takes some milliseconds at most; a longer one in pieces. */
const shortBytes = 16 * 1024;

/**
 * @param options.turns the turns of the request, in which a long body is parsed and checked
 * @param options.uniqueKeys whether a body that has a key of an object twice is refused; otherwise the last one counts, as in JSON.parse
 */
export function openJsonBody(
  request: Request,
  options: {
    readonly limitBytes: number;
    readonly dialect: Dialect;
    readonly turns: () => Turns;
    readonly uniqueKeys: boolean;
  },
): JsonBody {
  const { limitBytes, dialect, turns, uniqueKeys } = options;
  /** The long parts of a long body; undefined for a short one. */
  let long: Set<unknown> | undefined;
  let text = '';
  const check = async <Schema extends v.GenericSchema>(
    value: unknown,
    schema: Schema,
  ): Promise<v.InferOutput<Schema>> => {
    const { output, issues } =
      long === undefined
        ? v.safeParse(schema, value)
        : await inPieces(checkInPieces(schema, value, long.add(value)), turns());
    const [first, ...others] = issues ?? [];
    if (first !== undefined) throw dialect.invalidBody([first, ...others], schema);
    return output;
  };
  return {
    check,
    text: () => text,
    read: async (schema) => {
      const bytes = await readBody(request, limitBytes);
      let value: unknown;
      try {
        text = textOf(bytes);
        if (bytes.length <= shortBytes)
          value = uniqueKeys ? atOnce(parseLongJson(text, { uniqueKeys })).value : JSON.parse(text);
        else {
          const parsed = await inPieces(parseLongJson(text, { uniqueKeys }), turns());
          value = parsed.value;
          long = new Set(parsed.long);
        }
      } catch (error) {
        if (error instanceof ApiError) throw error;
        throw badRequest(dialect.malformedBody(messageOf(error)));
      }
      return check(value, schema);
    },
  };
}

/** Whether a request has a body. One in chunks may be empty, which is known when it has ended. @throws ApiError 413 as `JsonBody.read` */
export async function hasBody(request: Request, limitBytes: number): Promise<boolean> {
  const { headers } = request;
  if (!headers.has('transfer-encoding')) return Number(headers.get('content-length') ?? 0) > 0;
  return (await readBody(request, limitBytes)).byteLength > 0;
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

/** @throws an error with the reason why the bytes are no text */
function textOf(bytes: Uint8Array): string {
  try {
    return decodeUtf8(bytes);
  } catch {
    throw new Error('the body is not valid UTF-8.');
  }
}

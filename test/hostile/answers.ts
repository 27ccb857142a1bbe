/* Reads what a server sends on one connection, strictly: anything else than an answer is reported. */

/** An answer with a final status. */
export type Answer = {
  readonly status: number;
  /** The status line and the headers. */
  readonly head: string;
  /** The body, or its beginning: `keptBytes` of it. */
  readonly body: Buffer;
};

/** Clients keep so much of a long body. */
export const keptBytes = 5000;

/** The answers on a connection so far. */
export type Answers = {
  readonly answers: readonly Answer[];
  /** The number of answers with 100 Continue. */
  readonly continues: number;
  /** The bytes behind the last whole answer: the beginning of the next one. */
  readonly rest: Buffer;
  /** What is wrong with the bytes; what follows is not read. */
  readonly problem?: string;
};

/** Whether an answer says that it is the last one on its connection. */
export const closes = (answer: Answer | undefined): boolean => /\r\nconnection: close\r\n/i.test(answer?.head ?? '');

const headEnd = Buffer.from('\r\n\r\n');
const lineEnd = Buffer.from('\r\n');

/**
 * Reads answers one after the other.
 *
 * @param hasNoBody whether the request at an index was a HEAD: the answer to it ends behind its headers
 */
export function readAnswers(bytes: Buffer, hasNoBody: (index: number) => boolean = () => false): Answers {
  const answers: Answer[] = [];
  let continues = 0;
  let start = 0;
  const done = (problem?: string): Answers => ({
    answers,
    continues,
    rest: bytes.subarray(start),
    ...(problem === undefined ? {} : { problem }),
  });
  while (start < bytes.length) {
    const end = bytes.indexOf(headEnd, start);
    if (end < 0) return done();
    const head = bytes.toString('latin1', start, end + 2);
    const status = Number(/^HTTP\/1\.1 ([1-5]\d\d) [ -~]*\r\n/.exec(head)?.[1]);
    if (Number.isNaN(status)) return done(`no answer begins with ${JSON.stringify(head.slice(0, 80))}`);
    const bodyStart = end + headEnd.length;
    if (status < 200) {
      if (status !== 100) return done(`the interim status ${status}`);
      continues += 1;
      start = bodyStart;
      continue;
    }
    const isEmpty = status === 204 || status === 304 || hasNoBody(answers.length);
    const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1];
    const isChunked = /\r\ntransfer-encoding: chunked\r\n/i.test(head);
    if (length !== undefined && isChunked) return done('an answer with both lengths');
    if (isEmpty) {
      answers.push({ status, head, body: Buffer.alloc(0) });
      start = bodyStart;
    } else if (length !== undefined) {
      const bodyEnd = bodyStart + Number(length);
      if (bodyEnd > bytes.length) return done();
      answers.push({ status, head, body: bytes.subarray(bodyStart, bodyEnd) });
      start = bodyEnd;
    } else if (isChunked) {
      const chunked = readChunks(bytes, bodyStart);
      if (chunked === 'incomplete') return done();
      if (chunked === 'broken') return done('broken chunks');
      answers.push({ status, head, body: chunked.body });
      start = chunked.end;
    } else return done(`an answer without a length: ${JSON.stringify(head)}`);
  }
  return done();
}

type Chunked = { readonly body: Buffer; readonly end: number };

function readChunks(bytes: Buffer, from: number): Chunked | 'incomplete' | 'broken' {
  const parts: Buffer[] = [];
  for (let at = from; ; ) {
    const end = bytes.indexOf(lineEnd, at);
    if (end < 0) return 'incomplete';
    const text = bytes.toString('latin1', at, end);
    if (!/^[\da-f]{1,8}$/i.test(text)) return 'broken';
    const size = Number.parseInt(text, 16);
    const next = end + 2 + size;
    if (next + 2 > bytes.length) return 'incomplete';
    if (bytes[next] !== 0x0d || bytes[next + 1] !== 0x0a) return 'broken'; // there are no trailers
    if (size === 0) return { body: Buffer.concat(parts), end: next + 2 };
    parts.push(bytes.subarray(end + 2, next));
    at = next + 2;
  }
}

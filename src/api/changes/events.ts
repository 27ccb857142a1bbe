import type { ChangeSet } from '../../fleet/follow/change_set.ts';
import type { FollowerPlace, Told } from '../../fleet/follow/followers.ts';
import { tokenOf } from '../../fleet/follow/position.ts';
import { ApiError, errorCodes } from '../../request/errors.ts';
import type { ApiRequest } from '../../rest/endpoint.ts';

/** What a stream of changes works with. */
export type EventStream = {
  readonly request: ApiRequest;
  readonly place: FollowerPlace;
  readonly bits: number;
  /** What had changed when the request came. */
  readonly told: Told;
  /** Whether the client came without a token: then the first event tells it one. */
  readonly isNew: boolean;
  /** Closes the connection. */
  readonly cutOff: () => void;
};

/** How long a stream lives at most, in milliseconds. */
const longestMs = 3_600_000;
/** How many bytes may wait for a client before it is cut off. A single event may be longer. */
const mostWaiting = 256 * 1024;

const encoder = new TextEncoder();
const comment = encoder.encode(':\n\n');

/** The event of each set of changes, by the parts that a client follows: it is made once for all clients. */
const eventsOf = new WeakMap<ChangeSet, Map<number, Uint8Array<ArrayBuffer>>>();

function eventOf({ changes, position }: Told, bits: number): Uint8Array<ArrayBuffer> {
  const events = eventsOf.get(changes) ?? new Map<number, Uint8Array<ArrayBuffer>>();
  eventsOf.set(changes, events);
  let event = events.get(bits);
  if (event === undefined) {
    const id = tokenOf(position);
    event = encoder.encode(`id: ${id}\ndata: {"changes": ${changes.text(bits)}, "next": "${id}"}\n\n`);
    events.set(bits, event);
  }
  return event;
}

/**
 * Sends an event for each change, with the token of what has been told then as its id. Where nothing of interest changed, the id alone
 * is sent from time to time, so that a client that resumes does not come with an old token.
 */
export function streamEvents({
  request,
  place,
  bits,
  told,
  isNew,
  cutOff,
}: EventStream): ReadableStream<Uint8Array<ArrayBuffer>> {
  let { position } = told;
  let stop = (): void => {};
  const start = (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): void => {
    let isOpen = true;
    let sent = position;
    let unfollow = (): void => {};
    const end = (last?: Uint8Array<ArrayBuffer>): void => {
      if (!isOpen) return;
      stop();
      if (last !== undefined) controller.enqueue(last);
      controller.close();
    };
    const send = (event: Uint8Array<ArrayBuffer>): void => {
      sent = position;
      if ((controller.desiredSize ?? 0) > 0) controller.enqueue(event);
      else {
        // The client does not read. By the token of the last event that it has read it gets the others.
        stop();
        cutOff();
      }
    };
    const check = followerRights(request, (error) => end(errorEvent(refusalOf(error))));
    // Something is sent as well, so that neither the client nor a proxy takes the connection for dead.
    const beat = (): void => {
      send(position === sent ? comment : encoder.encode(`:\nid: ${tokenOf(position)}\n\n`));
      if (isOpen) check();
    };
    const beating = setInterval(beat, beatMs);
    const ending = setTimeout(() => end(), Math.min(longestMs, msLeft(request)));
    stop = () => {
      isOpen = false;
      clearInterval(beating);
      clearTimeout(ending);
      unfollow();
    };
    const gone = request.gone();
    gone.addEventListener('abort', () => end(), { once: true });
    send(isNew || told.changes.size(bits) > 0 ? eventOf(told, bits) : comment);
    const tell = (next: Told | 'expired' | 'ended'): void => {
      if (next === 'expired') end(errorEvent({ status: 410, code: errorCodes.changesExpired }));
      else if (next === 'ended') end();
      else {
        position = next.position;
        if (next.changes.size(bits) > 0) send(eventOf(next, bits));
      }
    };
    unfollow = place.follow({ bits, tell }, position);
    if (gone.aborted) end();
  };
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    { start, cancel: () => stop() },
    { highWaterMark: mostWaiting, size: ({ byteLength }) => byteLength },
  );
}

type Refusal = { readonly status: number; readonly code: string };

const refusalOf = (error: unknown): Refusal =>
  error instanceof ApiError ? error : { status: 500, code: errorCodes.undefined };

const errorEvent = ({ status, code }: Refusal) =>
  encoder.encode(`event: error\ndata: ${JSON.stringify({ status, code })}\n\n`);

/** How often it is checked whether a client may still follow, in milliseconds. */
export const beatMs = 15_000;

/**
 * Checks whether the client of a request may still follow changes: whether its token is still valid, and the policy still allows it. A check
 * that Keystone has not answered is waited for.
 *
 * @param onRefused called with the ApiError 401 or 403 once it may not
 * @returns the check, to be called at each beat
 */
export function followerRights({ requireStill }: ApiRequest, onRefused: (error: unknown) => void): () => void {
  let isChecking = false;
  return () => {
    if (isChecking) return;
    isChecking = true;
    requireStill('placement:changes:list')
      .catch(onRefused)
      .finally(() => {
        isChecking = false;
      });
  };
}

/** For how many milliseconds a token is valid at most, if Keystone cannot be asked. */
export const msLeft = ({
  identity: { expiresAtMs = Number.POSITIVE_INFINITY },
}: Pick<ApiRequest, 'identity'>): number => Math.max(0, expiresAtMs - Date.now());

import * as v from 'valibot';
import { readHistoryState } from '../../db/statements/usage_records.ts';
import { type ChangeSet, type Interest, interestOf, type Part, partNames } from '../fleet/follow/change_set.ts';
import { type Delivery, type FollowerSeat, mostEntries } from '../fleet/follow/followers.ts';
import { type Position, readToken, tokenOf } from '../fleet/follow/position.ts';
import { since } from '../placement/microversions.ts';
import { normalUuid } from '../placement/uuid.ts';
import { bySince } from '../placement/versions.ts';
import { ApiError, badRequest, errorCodes, unknownClassParameter } from '../request/errors.ts';
import type { Answer, ApiRequest, Endpoint } from '../rest/endpoint.ts';
import { object, text, uuidText } from '../rest/json_schema.ts';
import { checkUnrepeated } from '../rest/schema_check.ts';
import { failed } from '../rest/schema_complaint.ts';
import { clientOf, preferredWait } from './answers.ts';
import type { Dependencies } from './dependencies.ts';

// Routes

export const changeEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'GET',
    path: '/changes',
    since: since.following,
    policy: 'placement:changes:list',
    answersJson: true,
    takesParameters: true,
    answersEvents: true,
    handle: list,
  },
];

// Request schemas

type FollowedPart = Part | 'consumers';
const followedParts: readonly FollowedPart[] = [...partNames, 'consumers'];
const isFollowed = (name: string): name is FollowedPart => followedParts.some((part) => part === name);

const ofParts = (names: readonly string[]) => ({
  since: v.optional(text()),
  parts: v.optional(
    v.pipe(
      text(),
      v.check(
        (value) => value.split(',').every((name) => names.includes(name)),
        failed('pattern', (value) => `${value} is not a list of some of ${names.join(', ')}`),
      ),
    ),
  ),
});
const narrowing = { resource_class: v.optional(text()), in_tree: v.optional(uuidText) };

const parameters = [
  { since: since.names, schema: object({ ...ofParts(followedParts), ...narrowing }) },
  { since: since.teams, schema: object({ ...ofParts(partNames), ...narrowing }) },
  { since: since.following, schema: object(ofParts(partNames)) },
] as const;

/** How long a request may wait, in seconds. */
const mostWaitSeconds = 60;

// Handlers

async function list(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const requested: v.InferOutput<(typeof parameters)[0]['schema']> = checkUnrepeated(
    request.query(),
    bySince(parameters, request.version),
  );
  const waitSeconds = preferredWait(request, { least: 0, most: mostWaitSeconds });
  const wantsEvents = request.prefers(['application/json', 'text/event-stream']) === 'text/event-stream';
  const resumed = (wantsEvents && request.header('last-event-id')) || undefined;
  const token = resumed ?? requested.since;
  const name = resumed === undefined ? 'since' : 'Last-Event-ID';
  const read = token === undefined ? undefined : (readToken(token) ?? refuse(name, token));

  const { database, fleet, followers } = dependencies;
  const { resource_class: className, in_tree: tree } = requested;
  const parts = requested.parts?.split(',').filter(isFollowed);
  const { classes } = await fleet.fresh();
  // The position is read before the state of the history: if the history is switched off from now on, the log shows it.
  const { position } = fleet.recent;
  if (parts?.includes('consumers') && (await readHistoryState(database)) !== 'on') {
    throw badRequest(
      "Invalid query string parameters: 'consumers' in 'parts' are reported only while the history is on ([history] enabled). It is off. " +
        `Got: ${requested.parts}`,
    );
  }
  if (className !== undefined && !classes.byName.has(className)) throw unknownClassParameter(className, classes);
  const inTree = tree === undefined ? undefined : normalUuid(tree);
  const interest = interestOf(parts, { className, inTree });
  const delivery = read === undefined ? nothingSince(position) : await followers.since(read, interest);
  if (delivery === 'expired') throw expired();

  if (wantsEvents) {
    const seat = takeSeat(request, dependencies);
    const isNew = read === undefined;
    const checkMs = checkEveryMs(dependencies);
    return {
      status: 200,
      events: (cutOff) => streamEvents({ request, seat, interest, delivery, isNew, checkMs, cutOff }),
    };
  }
  const applied = waitSeconds === undefined ? {} : { headers: { 'preference-applied': `wait=${waitSeconds}` } };
  if (delivery.changes.size(interest) > 0 || !waitSeconds) return { ...answerOf(delivery, interest), ...applied };
  const seat = takeSeat(request, dependencies);
  return {
    ...answerOf(
      await firstChange(request, seat, { delivery, interest, waitSeconds, checkMs: checkEveryMs(dependencies) }),
      interest,
    ),
    ...applied,
  };
}

/**
 * Waits for the first change of one of the parts. Resolves without a change after the requested time, when the token expires, or when the
 * client disconnects.
 *
 * @throws ApiError 410 if the client must read everything again, as after a failover; 401 or 403 if the client may no longer follow
 */
function firstChange(
  request: ApiRequest,
  seat: FollowerSeat,
  {
    delivery,
    interest,
    waitSeconds,
    checkMs,
  }: {
    readonly delivery: Delivery;
    readonly interest: Interest;
    readonly waitSeconds: number;
    readonly checkMs: number;
  },
): Promise<Delivery> {
  const { promise, resolve, reject } = Promise.withResolvers<Delivery>();
  let last = delivery;
  const timer = setTimeout(() => resolve(nothingSince(last.position)), Math.min(waitSeconds * 1000, msLeft(request)));
  const checking = setInterval(followerRights(request, reject), checkMs);
  const leave = () => resolve(nothingSince(last.position));
  const gone = request.gone();
  gone.addEventListener('abort', leave, { once: true });
  if (gone.aborted) leave();
  const unfollow = seat.follow(
    {
      interest,
      send: (next) => {
        if (next === 'expired') reject(expired());
        else if (next === 'ended') leave();
        else {
          last = next;
          if (next.changes.size(interest) > 0) resolve(next);
        }
      },
    },
    delivery.position,
  );
  return promise.finally(() => {
    unfollow();
    clearTimeout(timer);
    clearInterval(checking);
    gone.removeEventListener('abort', leave);
  });
}

/**
 * Takes a seat for a request that follows changes.
 *
 * @throws ApiError 429 where all seats are taken, and no other client has at least 2 more
 */
function takeSeat(request: ApiRequest, { config, followers }: Dependencies): FollowerSeat {
  const client = clientOf(request, config);
  const seat = followers.takeSeat(client);
  if (seat !== undefined) return seat;
  throw new ApiError(
    429,
    `${config.changes.maxFollowers} clients follow changes by this process already, as many as may. Another user loses a place only if it has at ` +
      `least 2 more than ${client}, which has ${followers.seatsOf(client)}. Please retry later.`,
    { headers: { 'retry-after': '5' } },
  );
}

const refuse = (name: string, token: string): never => {
  throw badRequest(
    `${name} is not a token of GET /changes or of the header Placement-Changes-Token. Got: ${token.slice(0, 100)}`,
  );
};

/** Clients that get it at the same time, as after a failover, do not all read everything at the same time. */
const retrySeconds = () => 1 + Math.floor(Math.random() * 5);

const expired = (): ApiError =>
  new ApiError(
    410,
    'It is not known what changed since the token, as after a failover or when the token is too old or of another database, or ' +
      `more than ${mostEntries} entries changed. Read everything anew, and follow the changes from then on.`,
    { code: errorCodes.changesExpired, headers: { 'retry-after': String(retrySeconds()) } },
  );

// Response shapes

const nothingSince = (position: Position): Delivery => ({ changes: { size: () => 0, text: () => '[]' }, position });

function answerOf({ changes, position }: Delivery, interest: Interest): Answer {
  const body = encoder.encode(`{"changes": ${changes.text(interest)}, "next": "${tokenOf(position)}"}`);
  return { status: 200, body, lastModified: null };
}

/** What a stream of changes works with. */
type EventStream = {
  readonly request: ApiRequest;
  readonly seat: FollowerSeat;
  readonly interest: Interest;
  /** The changes until the request came. */
  readonly delivery: Delivery;
  /** Whether the client came without a token: then the first event has one. */
  readonly isNew: boolean;
  readonly checkMs: number;
  /** Closes the connection. */
  readonly cutOff: () => void;
};

/** How long a stream lives at most, in milliseconds. */
const longestMs = 3_600_000;
/** How many bytes may wait for a client before it is cut off. A single event may be longer. */
const mostWaiting = 256 * 1024;

const encoder = new TextEncoder();
const comment = encoder.encode(':\n\n');

/** The event of each set of changes, by interest: it is made once for all clients with the same interest. */
const eventsOf = new WeakMap<ChangeSet, Map<string, Uint8Array<ArrayBuffer>>>();

function eventOf({ changes, position }: Delivery, interest: Interest): Uint8Array<ArrayBuffer> {
  const events = eventsOf.get(changes) ?? new Map<string, Uint8Array<ArrayBuffer>>();
  eventsOf.set(changes, events);
  let event = events.get(interest.key);
  if (event === undefined) {
    const id = tokenOf(position);
    event = encoder.encode(`id: ${id}\ndata: {"changes": ${changes.text(interest)}, "next": "${id}"}\n\n`);
    events.set(interest.key, event);
  }
  return event;
}

/**
 * Sends an event for each change. The id of the event is the token of what the client has got with it. Where nothing of interest
 * changed, the id alone is sent from time to time, so that a client that resumes does not send an old token.
 */
function streamEvents({
  request,
  seat,
  interest,
  delivery,
  isNew,
  checkMs,
  cutOff,
}: EventStream): ReadableStream<Uint8Array<ArrayBuffer>> {
  let { position } = delivery;
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
        // The client does not read. With the token of the last event that it has read it gets the later ones.
        stop();
        cutOff();
      }
    };
    const check = followerRights(request, (error) => end(errorEvent(error)));
    // Something is sent as well, so that neither the client nor a proxy takes the connection for dead.
    const beat = (): void => {
      send(position === sent ? comment : encoder.encode(`:\nid: ${tokenOf(position)}\n\n`));
    };
    const beating = setInterval(beat, beatMs);
    const checking = setInterval(check, checkMs);
    const ending = setTimeout(() => end(), Math.min(longestMs, msLeft(request)));
    stop = () => {
      isOpen = false;
      clearInterval(beating);
      clearInterval(checking);
      clearTimeout(ending);
      unfollow();
    };
    const gone = request.gone();
    gone.addEventListener('abort', () => end(), { once: true });
    send(isNew || delivery.changes.size(interest) > 0 ? eventOf(delivery, interest) : comment);
    const deliver = (next: Delivery | 'expired' | 'ended'): void => {
      if (next === 'expired') end(errorEvent({ status: 410, code: errorCodes.changesExpired }));
      else if (next === 'ended') end();
      else {
        position = next.position;
        if (next.changes.size(interest) > 0) send(eventOf(next, interest));
      }
    };
    unfollow = seat.follow({ interest, send: deliver }, position);
    if (gone.aborted) end();
  };
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    { start, cancel: () => stop() },
    { highWaterMark: mostWaiting, size: ({ byteLength }) => byteLength },
  );
}

const errorEvent = ({ status, code }: Pick<ApiError, 'status' | 'code'>) =>
  encoder.encode(`event: error\ndata: ${JSON.stringify({ status, code })}\n\n`);

/** How often something is sent at least, in milliseconds. */
const beatMs = 15_000;

/** How often the token of a client that follows is checked, in milliseconds: after a revocation the client is ended within 5 s. */
const checkEveryMs = ({ config }: Pick<Dependencies, 'config'>): number =>
  config.api.authStrategy === 'tokens' ? 1_500 : 15_000;

/**
 * Checks whether the client of a request may still follow changes: whether its token is still valid, and the policy still allows it. A
 * check that Keystone has not answered is waited for.
 *
 * @param onRefused called with the error once the client may not follow any more
 * @returns the check, to be called from time to time
 */
function followerRights({ refusalNow }: ApiRequest, onRefused: (error: ApiError) => void): () => void {
  let isChecking = false;
  return () => {
    if (isChecking) return;
    isChecking = true;
    refusalNow('placement:changes:list').then((refusal) => {
      isChecking = false;
      if (refusal !== undefined) onRefused(refusal);
    });
  };
}

/** For how many milliseconds a token is valid at most, while Keystone is unreachable. */
const msLeft = ({ identity: { expiresAtMs = Number.POSITIVE_INFINITY } }: Pick<ApiRequest, 'identity'>): number =>
  Math.max(0, expiresAtMs - Date.now());

import { isMended } from './mended.ts';
import { type ConsumerState, type State, withConsumer } from './state.ts';

/*
 * The generations of consumers as answers show them. Below 2.1 a new consumer has generation 1. From 2.1 on a consumer that is made
 * again is another one: its generations are other numbers than those that answers showed of former consumers with its UUID. Which
 * numbers these are is left to the service: the checker learns them from answers.
 */

/** From this microversion on a consumer that is made again has generations of its own. */
const ownVersions = 2001;

/** Under which name the generation of a consumer is noted that an answer of this version shows. */
export const noteOf = (uuid: string, microversion: number): string =>
  isMended.madeAgain ? `${uuid} ${viewAt(microversion)}` : uuid;

/** All names under which generations of a consumer are noted. */
export const notesOf = (uuid: string): readonly string[] => [noteOf(uuid, 0), noteOf(uuid, ownVersions)];

const viewAt = (microversion: number) => (microversion >= ownVersions ? 'own' : 'old');

/** The shift of a new consumer. */
export const newShift = (): number | undefined => (isMended.madeAgain ? undefined : 0);

/** The generation that answers of this version show; undefined if none has shown it yet. */
function shownAt({ generation, shift }: ConsumerState, microversion: number): number | undefined {
  if (microversion < ownVersions) return generation;
  return shift === undefined ? undefined : generation + shift;
}

/**
 * Whether a client knows the generation of a consumer, or that there is none. A client that knows one has it from an answer, so that one
 * which no answer has shown is not known.
 */
export function isUpToDate(
  { consumers }: State,
  { uuid, generation }: { readonly uuid: string; readonly generation: number | null },
  microversion: number,
): boolean {
  const consumer = consumers[uuid];
  return consumer === undefined
    ? generation === null
    : generation !== null && shownAt(consumer, microversion) === generation;
}

/** The state in which the generation of a consumer is what an answer shows; undefined if it cannot be that. */
export function withShownGeneration(
  state: State,
  uuid: string,
  microversion: number,
  answer: unknown,
): State | undefined {
  const consumer = state.consumers[uuid];
  const shown = (answer as { readonly consumer_generation?: unknown } | undefined)?.consumer_generation;
  if (consumer === undefined || typeof shown !== 'number') return undefined;
  const present = shownAt(consumer, microversion);
  if (present !== undefined) return present === shown ? state : undefined;
  if (state.former[uuid]?.includes(shown)) return undefined;
  return withConsumer(state, uuid, { ...consumer, shift: shown - consumer.generation });
}

/** The same state without a consumer, whose generations no later one may have. */
export function withoutConsumer(state: State, uuid: string): State {
  const consumer = state.consumers[uuid];
  const next = withConsumer(state, uuid, undefined);
  const { generation = 0, shift } = consumer ?? {};
  if (!isMended.madeAgain || shift === undefined) return next;
  const known = Array.from({ length: generation }, (_, index) => shift + 1 + index);
  const former = [...new Set([...(state.former[uuid] ?? []), ...known])].sort((a, b) => a - b);
  return { ...next, former: { ...state.former, [uuid]: former } };
}

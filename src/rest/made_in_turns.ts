import type { Hold, TooWide, Turns } from '../request/turns.ts';
import type { Answer, ApiRequest } from './endpoint.ts';
import { type ChunkMaker, type JsonWriter, jsonBody, jsonWriter, takeBackMemory } from './json_body.ts';

/**
 * The body of an answer whose size grows with the fleet. It is made in turns, and other requests are served between them; from the
 * first pause on the present snapshot of the fleet is held.
 *
 * @param make makes the body; what it reads of the fleet before its first pause may be anything, after that only what a held
 *   snapshot keeps (src/fleet/model/held_snapshots.ts)
 * @throws what `make` throws before it has made two chunks
 */
export async function madeInTurns(
  { turns: turnsOf }: Pick<ApiRequest, 'turns'>,
  { hold }: { readonly hold: Hold },
  make: (turns: Turns) => ChunkMaker,
  tooWide?: TooWide,
): Promise<Pick<Answer, 'body' | 'release'>> {
  const turns = turnsOf();
  const body = await jsonBody(make(turns), hold, turns, tooWide);
  // Only the memory of a body that is sent as a whole is returned.
  return body instanceof Uint8Array ? { body, release: () => takeBackMemory(body) } : { body };
}

/** For `madeInTurns`, where the body shows nothing of the fleet, so that no snapshot is held. */
export const withoutFleet: { readonly hold: Hold } = { hold: () => ({ end: () => {} }) };

/** How long it takes to write an item of some hundred bytes, in rounds of `Turns.isOver`. */
const roundsPerItem = 50;

/**
 * Writes items with a separator between them, as a part of a chunked answer. Each is a result, so an answer may take long as a
 * whole.
 *
 * @param textOf the JSON text of an item
 */
function* writeItems<Item>(
  json: JsonWriter,
  turns: Turns,
  items: Iterable<Item>,
  { textOf, separator }: Pick<ListForm<Item>, 'textOf' | 'separator'>,
): ChunkMaker {
  let between = '';
  for (const item of items) {
    writeText(json, between + textOf(item));
    between = separator;
    turns.noteResult();
    if (json.isFull()) yield json.take();
    else if (turns.isOver(roundsPerItem)) yield;
  }
}

/**
 * The body of an answer with one list. The items must not change with the fleet while the answer is made.
 *
 * @param name of the list in the answer
 * @param more the JSON texts of further fields
 */
export async function listInTurns<Item>(
  request: Pick<ApiRequest, 'turns'>,
  name: string,
  items: readonly Item[],
  textOf: (item: Item) => string,
  more: readonly (readonly [name: string, json: string])[] = [],
): Promise<Pick<Answer, 'body' | 'release'>> {
  const end = `]${more.map(([field, text]) => `,"${field}":${text}`).join('')}}`;
  const form: ListForm<Item> = { begin: `{"${name}":[`, textOf, separator: ',', end };
  if (items.length <= shortListItems) return { body: listText(items, form) };
  return madeInTurns(request, withoutFleet, (turns) => writeList(turns, items, form));
}

/** The text of a list: the texts before and after it, the text of each item, and the text between two items. */
export type ListForm<Item> = {
  readonly begin: string;
  readonly textOf: (item: Item) => string;
  readonly separator: string;
  readonly end: string;
};

/** A list of up to this number of items is made in one piece, which takes less time. Most lists are shorter. */
export const shortListItems = 20;

/** The whole text of a list that is short. */
export const listText = <Item>(items: Iterable<Item>, { begin, textOf, separator, end }: ListForm<Item>): string =>
  begin + Array.from(items, textOf).join(separator) + end;

/** The text of a list of any length, in chunks. */
export function* writeList<Item>(
  turns: Turns,
  items: Iterable<Item>,
  { begin, end, ...each }: ListForm<Item>,
): ChunkMaker {
  const json = jsonWriter();
  json.text(begin);
  yield* writeItems(json, turns, items, each);
  writeText(json, end);
  yield json.take();
}

/** Writes text, also what is not ASCII. */
function writeText(json: JsonWriter, text: string): void {
  if (/[^ -~]/.test(text)) json.bytes(Buffer.from(text));
  else json.text(text);
}

/**
 * The members of a JSON object in the order in which JSON.stringify writes them: keys that look like an index of an array come
 * first. The API takes no such keys; other programs may have written them.
 */
export function inOrderOfMembers<Value>(members: ReadonlyMap<string, Value>): Iterable<readonly [string, Value]> {
  if (!members.keys().some(isIndex)) return members;
  const indexed = [...members].filter(([key]) => isIndex(key));
  indexed.sort(([one], [other]) => Number(one) - Number(other));
  return [...indexed, ...[...members].filter(([key]) => !isIndex(key))];
}

const isIndex = (key: string): boolean =>
  key.length <= 10 && /^(?:0|[1-9][0-9]*)$/.test(key) && Number(key) < 2 ** 32 - 1;

import { takeBackMemory } from '../candidates/answer_memory.ts';
import type { JsonWriter } from '../candidates/json_writer.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';
import type { Answer, ApiRequest } from '../rest/endpoint.ts';
import { type ChunkMaker, jsonBody } from '../rest/json_body.ts';
import type { TooWide, Turns } from '../rest/pieces.ts';

/**
 * The body of an answer whose size grows with the fleet. It is made in turns, and others are served between them; from the
 * first pause on the present moment of the fleet is held.
 *
 * @param make makes the body; what it reads of the fleet before its first pause may be anything, after that only what a held
 *   moment keeps (src/fleet/held_moments.ts)
 * @throws what `make` throws before it has made two chunks
 */
export async function madeInTurns(
  { turns: turnsOf }: Pick<ApiRequest, 'turns'>,
  { hold }: Pick<FleetKeeper, 'hold'>,
  make: (turns: Turns) => ChunkMaker,
  tooWide?: TooWide,
): Promise<Pick<Answer, 'body' | 'release'>> {
  const turns = turnsOf();
  const body = await jsonBody(make(turns), hold, turns, tooWide);
  // Only the memory of a body that is sent as a whole comes back.
  return body instanceof Uint8Array ? { body, release: () => takeBackMemory(body) } : { body };
}

/** How long it takes to write an item of some hundred bytes, in rounds of `Turns.isOver`. */
const roundsPerItem = 50;

/**
 * Writes items with a separator between them, as a part of a chunked answer. Each is a result, so an answer may take long as a
 * whole.
 *
 * @param textOf the JSON text of an item
 */
export function* writeItems<Item>(
  json: JsonWriter,
  turns: Turns,
  items: Iterable<Item>,
  { textOf, separator }: { readonly textOf: (item: Item) => string; readonly separator: string },
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

/** Writes text, also what is not ASCII. */
function writeText(json: JsonWriter, text: string): void {
  if (/[^ -~]/.test(text)) json.bytes(Buffer.from(text));
  else json.text(text);
}

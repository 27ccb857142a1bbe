/** A batch waits for more items for at most this number of turns of the event loop. */
const mostTurns = 5;

/**
 * Reads the requests that wait at the sockets, and goes on as long as more come, so that they share a batch.
 *
 * @param count how many items wait
 */
export async function gatherMore(turn: () => Promise<void>, count: () => number): Promise<void> {
  for (let turns = 0, before = -1; turns < mostTurns && count() > before; turns += 1) {
    before = count();
    await turn();
  }
}

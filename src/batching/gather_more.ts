/** A batch waits for more items for at most this number of turns of the event loop. */
const mostTurns = 5;

/**
 * Reads the requests that wait at the sockets, and goes on as long as more come, so that they share a batch. If one item
 * waits and the batch before had one, it does not look for others: mostly one client sends at a time then, and looking
 * would only cost time.
 *
 * @param count how many items wait
 * @param latest how many items the batch before had
 */
export async function gatherMore(turn: () => Promise<void>, count: () => number, latest: number): Promise<void> {
  if (count() < 2 && latest < 2) return;
  for (let turns = 0, before = -1; turns < mostTurns && count() > before; turns += 1) {
    before = count();
    await turn();
  }
}

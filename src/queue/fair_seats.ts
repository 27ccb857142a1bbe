/** A limited number of seats that clients share: for requests that wait, or for clients that follow changes. */
type FairSeats<T> = {
  /** How many seats are taken. */
  readonly size: number;
  /** How many seats a client has. */
  sizeOf(client: string): number;
  /**
   * Takes a seat for a client. If all seats are taken, the client with most seats loses its youngest seat, but only if it then
   * still has at least as many seats as the other client.
   *
   * @returns whether the client got a seat
   */
  take(client: string, occupant: T): boolean;
  /** Frees the seat of an occupant. @returns whether the occupant still had the seat */
  leave(client: string, occupant: T): boolean;
  /** Frees the oldest seat of the next client, and returns its occupant. Clients take turns. */
  next(): T | undefined;
  /** Frees all seats, and returns their occupants. */
  clear(): readonly T[];
};

/**
 * Opens the seats; all are free. While seats are free, one client may take all of them. When no seat is free, a client with fewer seats
 * takes a seat from the client with most seats.
 *
 * @param options.most how many seats there are
 * @param options.onEvicted called with each occupant whose seat another client gets
 */
export function openFairSeats<T>({
  most,
  onEvicted,
}: {
  readonly most: number;
  readonly onEvicted: (occupant: T) => void;
}): FairSeats<T> {
  /** The occupants by client, the oldest first; the first client is the next one. */
  const taken = new Map<string, Set<T>>();
  let size = 0;

  const sizeOf = (client: string): number => taken.get(client)?.size ?? 0;

  function leave(client: string, occupant: T): boolean {
    const own = taken.get(client);
    if (!own?.delete(occupant)) return false;
    if (own.size === 0) taken.delete(client);
    size -= 1;
    return true;
  }

  function makeRoom(client: string): boolean {
    if (size < most) return true;
    let [greatest, occupants]: [string, ReadonlySet<T>] = ['', new Set()];
    for (const [other, theirs] of taken) if (theirs.size > occupants.size) [greatest, occupants] = [other, theirs];
    if (occupants.size <= sizeOf(client) + 1) return false;
    for (const youngest of [...occupants].slice(-1)) {
      leave(greatest, youngest);
      onEvicted(youngest);
    }
    return true;
  }

  return {
    get size() {
      return size;
    },
    sizeOf,
    take: (client, occupant) => {
      if (!makeRoom(client)) return false;
      const own = taken.get(client);
      if (own === undefined) taken.set(client, new Set([occupant]));
      else own.add(occupant);
      size += 1;
      return true;
    },
    leave,
    next: () => {
      const [first] = taken;
      if (first === undefined) return undefined;
      const [client, own] = first;
      const [oldest] = own;
      // The client goes behind the other clients.
      taken.delete(client);
      taken.set(client, own);
      if (oldest !== undefined) leave(client, oldest);
      return oldest;
    },
    clear: () => {
      const all = [...taken.values()].flatMap((own) => [...own]);
      taken.clear();
      size = 0;
      return all;
    },
  };
}

import { normalUuid } from '../placement/uuid.ts';
import type { ConsumerClaim, PlacementQuery } from './claim.ts';

/**
 * The order in which the consumers by query of a claim are placed: the order of the claim, but each one after those that
 * its queries name in `with`.
 *
 * @returns `placing`: indexes in the list; or `circle`: the UUIDs of consumers of which each would have to come after
 *   the next one
 */
export function placingOrder(
  consumers: readonly ConsumerClaim[],
): { readonly placing: readonly number[] } | { readonly circle: readonly string[] } {
  const placed = [...consumers.keys()].filter((place) => consumers[place]?.queries !== undefined);
  if (!consumers.some(namesOthers)) return { placing: placed };
  const places = new Map(consumers.map(({ uuid }, place) => [normalUuid(uuid), place]));
  const after = consumers.map(({ queries = [] }, place) =>
    namedBy(queries, 'with').flatMap((uuid) => {
      const other = places.get(normalUuid(uuid));
      return other === undefined || other === place || consumers[other]?.queries === undefined ? [] : [other];
    }),
  );
  const placing = new Set<number>();
  for (const start of placed) {
    // Without recursion: each of a thousand consumers may name the one before.
    const way: { readonly place: number; readonly others: Iterator<number> }[] = [];
    const onWay = new Set<number>();
    const enter = (place: number): void => {
      onWay.add(place);
      way.push({ place, others: (after[place] ?? []).values() });
    };
    if (!placing.has(start)) enter(start);
    for (let step = way.at(-1); step !== undefined; step = way.at(-1)) {
      const { done, value } = step.others.next();
      if (done) {
        placing.add(step.place);
        onWay.delete(step.place);
        way.pop();
      } else if (onWay.has(value)) {
        const circle = way.slice(way.findIndex(({ place }) => place === value));
        return { circle: circle.map(({ place }) => consumers[place]?.uuid ?? '') };
      } else if (!placing.has(value)) enter(value);
    }
  }
  return { placing: [...placing] };
}

/** Whether the queries of a consumer name consumers in `with` or `apart_from`. */
export const namesOthers = ({ queries }: Pick<ConsumerClaim, 'queries'>): boolean =>
  queries?.some(({ request }) => request.with.length + request.apartFrom.length > 0) === true;

/** The consumers that some queries name in `with` or `apart_from`. */
export const namedBy = (queries: readonly PlacementQuery[], by: 'with' | 'apartFrom'): readonly string[] => [
  ...new Set(queries.flatMap(({ request }) => request[by])),
];

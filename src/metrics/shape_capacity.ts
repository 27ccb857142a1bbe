import { setImmediate as otherWork } from 'node:timers/promises';
import type { Shape } from '../api/candidates/shapes.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { ApiError } from '../rest/errors.ts';
import { type Hold, inPiecesOfOneMoment, openTurns } from '../rest/pieces.ts';
import { countPlacements } from '../search/count/count.ts';

const name = 'placement_shape_capacity';
const help =
  'How many consumers of a shape can be claimed at once beside what is used now; at least as many, in rare cases more. ' +
  'Each shape is counted at a moment of its own.';
/** More than any deployment has room for. */
const most = 1_000_000;

/**
 * How many of each shape fit, as a gauge in the text format of Prometheus. Requests are answered meanwhile.
 *
 * @param options.hold holds the moment of the fleet
 * @param options.leftOut called with each shape that is left out, since it takes too much work or too much changes meanwhile
 */
export async function shapeCapacityText(
  fleet: Fleet,
  shapes: readonly Shape[],
  { hold, leftOut }: { readonly hold: Hold; readonly leftOut: (shape: string, error: ApiError) => void },
): Promise<string> {
  if (shapes.length === 0) return '';
  let text = `# HELP ${name} ${help}\n# TYPE ${name} gauge\n`;
  for (const shape of shapes) {
    try {
      text += `${name}{shape="${shape.name}"} ${await capacityFor(fleet, shape, hold)}\n`;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      leftOut(shape.name, error);
    }
    await otherWork();
  }
  return text;
}

/** Of a class or a trait that does not exist yet, nothing fits. @throws ApiError 503 where it cannot be counted */
async function capacityFor(fleet: Fleet, { name, request }: Shape, hold: Hold): Promise<number> {
  const turns = openTurns();
  const tooWide = () => new ApiError(503, `The shape ${name} takes too much work to be counted.`);
  try {
    const work = countPlacements(fleet, request, { max: most, top: 0, turns });
    return (await inPiecesOfOneMoment(work, hold, turns, tooWide)).count;
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return 0;
    throw error;
  }
}

import { setImmediate as otherWork } from 'node:timers/promises';
import { countPlacements } from '../candidates/count/count.ts';
import type { Shape } from '../candidates/shapes.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { ApiError } from '../rest/errors.ts';

const name = 'placement_shape_capacity';
const help =
  'How many consumers of a shape can be claimed at once beside what is used now; at least as many, in rare cases more. ' +
  'Each shape is counted at a moment of its own.';
/** More than any deployment has room for. */
const most = 1_000_000;

/** How many of each shape fit, as a gauge in the text format of Prometheus. Requests are answered between one shape and the next. */
export async function shapeCapacityText(fleet: Fleet, shapes: readonly Shape[]): Promise<string> {
  if (shapes.length === 0) return '';
  let text = `# HELP ${name} ${help}\n# TYPE ${name} gauge\n`;
  for (const shape of shapes) {
    text += `${name}{shape="${shape.name}"} ${capacityFor(fleet, shape)}\n`;
    await otherWork();
  }
  return text;
}

/** Of a class or a trait that does not exist yet, nothing fits. */
function capacityFor(fleet: Fleet, { request }: Shape): number {
  try {
    return countPlacements(fleet, request, { max: most, top: 0 }).count;
  } catch (error) {
    if (error instanceof ApiError) return 0;
    throw error;
  }
}

import { placementService } from '../../placement/microversions.ts';
import { newestOf } from '../../placement/versions.ts';
import { ApiError } from '../../request/errors.ts';
import { parseQuery } from '../../rest/query_string.ts';
import type { CandidateRequest } from '../../search/request.ts';
import { parseCandidateRequest, queryParameters } from './query.ts';

/** A query for candidates that has a name, such as a flavor. */
export type Shape = { readonly name: string; readonly request: CandidateRequest };

/** How many fit is counted whatever consumers hold. */
const parameters = queryParameters(['limit', 'with', 'apart_from']);

/**
 * Reads shapes: `small: resources=VCPU:2,MEMORY_MB:4096; gpu: resources=VGPU:1&required=HW_GPU_API_VULKAN`.
 *
 * @throws ShapeError naming the shape and the mistake
 */
export function parseShapes(text: string): readonly Shape[] {
  const shapes = text
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(parseShape);
  const names = shapes.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new ShapeError(twice, 'there are two of this name');
  return shapes;
}

/** A mistake in a shape of the configuration. */
export class ShapeError extends Error {
  constructor(name: string, problem: string) {
    super(`the shape "${name}": ${problem}`);
  }
}

function parseShape(text: string): Shape {
  const colon = text.indexOf(':');
  const name = text.slice(0, colon).trim();
  const query = text.slice(colon + 1).trim();
  if (colon === -1 || !/^[\w.-]+$/.test(name)) {
    throw new ShapeError(text, 'must be a name of letters, digits, ".", "_" and "-", a colon, and a query');
  }
  try {
    const parsed = parseQuery(query);
    if (parsed.last('limit') !== undefined) throw new ShapeError(name, 'has a limit, which has no meaning here');
    return { name, request: parseCandidateRequest(parsed, newestOf(placementService), parameters) };
  } catch (error) {
    if (error instanceof ApiError)
      throw new ShapeError(name, (error.sentence ?? error.message).replaceAll(/\s+/g, ' '));
    throw error;
  }
}

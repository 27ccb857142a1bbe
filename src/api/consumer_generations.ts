import { type ConsumerGenerations, shownGeneration } from '../placement/consumer_generation.ts';
import type { ApiRequest } from '../rest/endpoint.ts';
import { since } from '../rest/microversions.ts';

/**
 * Whether, at a version, the generation of a consumer goes on after those of former consumers with the same UUID. Versions
 * of OpenStack Placement show that of the record, which begins at 1 again.
 */
export const goesOn = (version: number): boolean => version >= since.entityTags;

/** The generation of a consumer as answers to a request have it. */
export const generationFor = ({ version }: Pick<ApiRequest, 'version'>, consumer: ConsumerGenerations): number | null =>
  shownGeneration(consumer, goesOn(version));

/** The same for a row of allocations. */
export const generationOfRow = (
  request: Pick<ApiRequest, 'version'>,
  row: { readonly consumer_generation: number | null; readonly former_generations: number },
): number | null =>
  generationFor(request, { generation: row.consumer_generation, formerGenerations: row.former_generations });

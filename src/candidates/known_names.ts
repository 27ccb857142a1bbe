import type { Fleet } from '../fleet/fleet.ts';
import { isCustom } from '../fleet/names.ts';
import { badRequest, noSuchClass, noSuchTraits } from '../rest/errors.ts';
import type { Condition } from './conditions.ts';
import type { CandidateRequest } from './request.ts';

/**
 * Checks that the classes and traits of all conditions exist, also of those that are not looked at because others
 * cannot be met.
 *
 * @throws ApiError 400 naming the parameter and the value
 */
export function requireKnownNames(fleet: Fleet, conditions: readonly Condition[]): void {
  for (const condition of conditions) {
    const problem = unknownName(fleet, condition);
    if (problem !== undefined) {
      throw badRequest(`Invalid query string parameters: ${condition.parameter}=${condition.value}: ${problem}`);
    }
  }
}

function unknownName({ classes, traits }: Fleet, condition: Condition): string | undefined {
  if (condition.kind === 'resource') {
    return classes.byName.has(condition.name) ? undefined : noSuchClass(condition.name);
  }
  const unknown = traitNamesOf(condition).filter((name) => !traits.byName.has(name));
  return unknown.length === 0 ? undefined : noSuchTraits(unknown);
}

function traitNamesOf(condition: Condition): readonly string[] {
  if (condition.kind === 'root') return [...condition.required, ...condition.forbidden];
  return condition.kind === 'trait' ? [...condition.traits.required.flat(), ...condition.traits.forbidden] : [];
}

/** The custom classes and the custom traits that a request names. */
export function customNamesOf({ groups, rootTraits, order }: CandidateRequest): {
  readonly classes: readonly string[];
  readonly traits: readonly string[];
} {
  const classes = groups.flatMap(({ resources }) => [...resources.keys()]);
  const traits = groups.flatMap(({ traits: { required, forbidden } }) => [...required.flat(), ...forbidden]);
  for (const key of order) {
    if (key.kind === 'free') classes.push(key.className);
    else if (key.kind === 'prefer') traits.push(key.traitName);
  }
  return {
    classes: classes.filter(isCustom),
    traits: [...traits, ...rootTraits.required, ...rootTraits.forbidden].filter(isCustom),
  };
}

import type { UnmetCondition } from '../client/candidate_questions.ts';

/** Whether nothing is free, as in a provider with everything reserved. The free amount is negative if it was in use before. */
export const hasNoneLeft = ({ reason, free }: UnmetCondition): boolean => reason === 'capacity' && (free ?? 0) <= 0;

/**
 * Why no provider of a tree meets a condition.
 *
 * @param drained the UUIDs of providers
 * @param textOf the text of an amount of the class
 */
export function sentenceOf(
  condition: UnmetCondition,
  drained: ReadonlySet<string>,
  textOf: (amount: number) => string = String,
): string {
  const { reason, value, asked, free, tree_free } = condition;
  const { name, uuid } = condition.resource_provider;
  if (hasNoneLeft(condition) && drained.has(uuid)) return `${name} is drained`;
  const fitsInParts = asked !== null && tree_free !== undefined && tree_free !== null && tree_free >= asked;
  const isForbidden = value.startsWith('!');
  switch (reason) {
    case 'capacity':
      if (free !== null && free < 0) return `${name} has none left: ${textOf(-free)} more are in use than it may give`;
      return `${name} has ${free === null ? free : textOf(free)} left${fitsInParts ? `; its tree has ${textOf(tree_free)} in parts: ask by groups` : ''}`;
    case 'absent':
      return 'there is none';
    case 'max_unit':
      return `${name} allows a smaller amount per allocation (max_unit)`;
    case 'min_unit':
      return `${name} allows only a larger amount per allocation (min_unit)`;
    case 'step_size':
      return `${name} allows only multiples (step_size)`;
    case 'trait':
      return `${name} ${isForbidden ? 'has it' : value.startsWith('in:') ? 'has none of them' : 'does not have it'}`;
    case 'aggregate':
      return `${name} ${isForbidden ? 'is in it' : value.startsWith('in:') ? 'is in none of them' : 'is not in it'}`;
    case 'tree':
      return 'it is another tree';
    default:
      return 'met, but not together with all others';
  }
}

import type { UnmetCondition } from '../../src/client/candidate_questions.ts';
import type { Fits } from '../fit/fits.ts';
import { amountText, numberText, percentText } from '../text.ts';
import type { Group } from './grouping.ts';
import { type Shade, stepCount, stepOf } from './palette.ts';
import { fullness, type Measure, type Tree } from './trees.ts';

/** How the cells of the grid are drawn: by how full they are, or by how often a query fits. */
export type CellStyle = {
  /** The meaning of the colours, for screen readers. */
  readonly what: string;
  readonly shadeOf: (tree: Tree) => Shade;
  readonly shadeOfGroup: (group: Group) => Shade;
  /** The text under the name of a tree. */
  readonly textOf: (tree: Tree) => string;
  /** The short text next to the name of a group. */
  readonly textOfGroup: (group: Group) => string;
  /** More text in the heading of a group, if there is room. */
  readonly detailOfGroup: (group: Group) => string;
};

const isDrained = ({ drain }: Tree): boolean => drain === 'drained';

/** Colours by how full trees are of a class. */
export function fullnessStyle(resourceClass: string, measure: Measure): CellStyle {
  const partOf = ({ amounts }: Tree) => fullness(amounts.get(resourceClass), measure);
  const partOfGroup = ({ sums }: Group) => fullness(sums.get(resourceClass), measure);
  return {
    what: resourceClass,
    shadeOf: (tree) => (isDrained(tree) ? 'drained' : stepOf(partOf(tree))),
    shadeOfGroup: (group) => (group.trees.every(isDrained) ? 'drained' : stepOf(partOfGroup(group))),
    textOf: (tree) => (isDrained(tree) ? 'drained' : percentText(partOf(tree))),
    textOfGroup: (group) => (group.sums.has(resourceClass) ? percentText(partOfGroup(group)) : ''),
    detailOfGroup: ({ sums, trees }) => {
      const each = sums.get(resourceClass);
      if (each === undefined) return '';
      return `${trees.length} · ${amountText(resourceClass, each.used)} of ${amountText(resourceClass, each.capacity)}`;
    },
  };
}

/** The lightest step of a fitting tree: it is darker than the colour of an empty one. */
const firstFitStep = 5;

/** The step for a number from 1 to the largest one. */
const stepFor = (value: number, most: number): number =>
  most <= 1 ? stepCount - 7 : firstFitStep + Math.round(((stepCount - 1 - firstFitStep) * (value - 1)) / (most - 1));

/** Colours by how often a query fits, and for trees where it nearly fits. */
export function fitStyle(fits: Fits | undefined): CellStyle {
  const timesIn = ({ uuid }: Tree) => fits?.times.get(uuid) ?? 0;
  const fittingOf = ({ trees }: Group) => trees.reduce((sum, tree) => sum + (timesIn(tree) > 0 ? 1 : 0), 0);
  const shadeOf = (tree: Tree): Shade => {
    const times = timesIn(tree);
    if (times > 0) return stepFor(times, fits?.most ?? 1);
    if (fits?.near.has(tree.uuid)) return 'near';
    return isDrained(tree) ? 'drained' : 'none';
  };
  return {
    what: 'how often it fits',
    shadeOf,
    shadeOfGroup: (group) => {
      const fitting = fittingOf(group);
      if (fitting > 0) return stepFor(fitting, group.trees.length);
      const shades = new Set(group.trees.map(shadeOf));
      if (shades.has('near')) return 'near';
      return shades.size === 1 && shades.has('drained') ? 'drained' : 'none';
    },
    textOf: (tree) => {
      const times = timesIn(tree);
      if (times > 0) return `×${numberText(times)}`;
      return fits?.near.has(tree.uuid) ? 'nearly' : isDrained(tree) ? 'drained' : '';
    },
    textOfGroup: (group) => (fits === undefined ? '' : `${fittingOf(group)} of ${group.trees.length}`),
    detailOfGroup: () => '',
  };
}

/** The unmet conditions of a query in a tree, as far as they are known. */
export const unmetIn = (fits: Fits | undefined, { uuid }: Pick<Tree, 'uuid'>): readonly UnmetCondition[] =>
  fits?.unmet.get(uuid) ?? [];

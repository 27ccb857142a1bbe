import { JSONPath } from 'jsonpath-plus';
import { type Filter, parseJsonPath, type Step } from './jsonpath_syntax.ts';
import { isMap, type Value } from './parse.ts';
import { pythonRegex, pythonText } from './python.ts';

/**
 * The value at a JSONPath, as gabbi finds it: a single value, or a list if there are several.
 *
 * @throws Error if there is no value, or if the path cannot be parsed
 */
export function jsonPathValue(json: Value | undefined, path: string): Value {
  if (json === undefined) throw new Error(`there is no JSON in which ${path} could be`);
  const found = findAll(json, parseJsonPath(path));
  const [first] = found;
  if (first === undefined) throw new Error(`${path} is not in ${JSON.stringify(json)}`);
  return found.length === 1 ? first : found;
}

const findAll = (json: Value, steps: readonly Step[]): readonly Value[] =>
  steps.reduce<readonly Value[]>((values, step) => values.flatMap((value) => apply(step, value)), [json]);

function apply(step: Step, value: Value): readonly Value[] {
  switch (step.kind) {
    case 'path':
      return walk(value, step.path);
    case 'len':
      if (typeof value === 'string') return [[...value].length];
      if (Array.isArray(value)) return [value.length];
      return isMap(value) ? [Object.keys(value).length] : [];
    case 'sorted':
      if (Array.isArray(value)) return [value.toSorted(compare)];
      return isMap(value) ? [Object.keys(value).toSorted(compare)] : [value];
    case 'filter':
      if (!Array.isArray(value)) return [];
      return value.filter((item: Value) => step.conditions.every((condition) => holds(condition, item)));
  }
}

function walk(value: Value, path: string): readonly Value[] {
  // The library treats every falsy document as missing.
  if (typeof value !== 'object' || value === null) return [];
  return JSONPath<Value[]>({ json: value, path: `$${path}`, eval: false });
}

function holds({ path, operator, operand }: Filter, item: Value): boolean {
  const found = findAll(item, path);
  if (operator === undefined) return found.length > 0;
  return found.some((value) => {
    const left = typeof operand === 'number' ? Number(value) : value;
    return value !== null && comparisons[operator](left, operand);
  });
}

const comparisons: Readonly<Record<NonNullable<Filter['operator']>, (left: Value, right: Value) => boolean>> = {
  '=': (left, right) => left === right,
  '==': (left, right) => left === right,
  '!=': (left, right) => left !== right,
  '<': (left, right) => compare(left, right) < 0,
  '<=': (left, right) => compare(left, right) <= 0,
  '>': (left, right) => compare(left, right) > 0,
  '>=': (left, right) => compare(left, right) >= 0,
  '~': (left, right) => pythonRegex(`^(?:${pythonText(right)})`).test(pythonText(left)),
};

/** Python's order: numbers by value, texts by code point. */
function compare(left: Value, right: Value): number {
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  return Buffer.compare(Buffer.from(pythonText(left)), Buffer.from(pythonText(right)));
}

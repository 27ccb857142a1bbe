import { InvalidArgumentError } from 'commander';
import type { Inventory, NewInventory, Resources } from '../client/index.ts';
import { maxInteger } from '../placement/inventory.ts';
import { CommandFailure } from './exit_codes.ts';

const classPattern = /^[A-Z0-9_]+$/;
const form = 'Write it as CLASS=AMOUNT, such as VCPU=2';

/** Reads `VCPU=2`. @throws InvalidArgumentError, which commander prints with the argument */
export function amountOf(text: string): readonly [resourceClass: string, amount: number] {
  const [name = '', amount = '', ...more] = text.split('=');
  if (more.length > 0 || !classPattern.test(name)) throw new InvalidArgumentError(`${form}, with a class in capitals.`);
  if (!isWhole(amount, 1)) throw new InvalidArgumentError(`${form}: a whole number from 1 to ${maxInteger}.`);
  return [name, Number(amount)];
}

/** Whether a text is a whole number in a range. */
export const isWhole = (text: string, least: number, most = maxInteger): boolean =>
  /^\d+$/.test(text) && Number(text) >= least && Number(text) <= most;

/** Makes a function that reads a whole number. @throws InvalidArgumentError, which commander prints with the argument */
export const wholeNumber =
  (least: number, most = maxInteger) =>
  (text: string): number => {
    if (isWhole(text, least, most)) return Number(text);
    throw new InvalidArgumentError(`It is a whole number from ${least} to ${most}.`);
  };

/** For options and arguments that may be repeated, each time with a different class. @throws InvalidArgumentError */
export const collectAmounts = (text: string, before: Resources = {}): Resources => {
  const [name, amount] = amountOf(text);
  if (before[name] !== undefined) throw new InvalidArgumentError(`${name} is given twice. Give each class once.`);
  return { ...before, [name]: amount };
};

/** For options that may be repeated. */
export const collect = (text: string, before: readonly string[] = []): readonly string[] => [...before, text];

/** The fields of an inventory, in the order in which they are shown. */
export const inventoryFields = [
  'total',
  'reserved',
  'min_unit',
  'max_unit',
  'step_size',
  'allocation_ratio',
] as const satisfies readonly (keyof Inventory)[];

/** Fields to change, by class. */
export type InventoryChanges = { readonly [resourceClass: string]: Partial<Inventory> };

const insteadOfNone = ' To close a host use "placement drain", to take the class away "placement inventory delete".';

/** Reads `VCPU=8` (the total), `VCPU:reserved=1` and the like. */
export function collectInventory(text: string, before: InventoryChanges = {}): InventoryChanges {
  const match = /^([^:=]+)(?::([^=]+))?=(.+)$/.exec(text);
  const [, name = '', field = 'total', value = ''] = match ?? [];
  if (!classPattern.test(name)) {
    throw new InvalidArgumentError(
      'Write it as CLASS=TOTAL or CLASS:FIELD=VALUE, such as VCPU=8 VCPU:allocation_ratio=4',
    );
  }
  const known = inventoryFields.find((one) => one === field);
  if (known === undefined) {
    throw new InvalidArgumentError(`There is no field ${field}. Choose one of ${inventoryFields.join(', ')}.`);
  }
  const number = Number(value);
  const isRatio = known === 'allocation_ratio';
  const least = known === 'reserved' ? 0 : 1;
  const isRight = isRatio ? number > 0 && Number.isFinite(number) : isWhole(value, least);
  if (!isRight) {
    const right = isRatio ? 'a number above 0' : `a whole number from ${least} to ${maxInteger}`;
    throw new InvalidArgumentError(
      `${field} must be ${right}, not "${value}".${known === 'total' && number <= 0 ? insteadOfNone : ''}`,
    );
  }
  if (before[name]?.[known] !== undefined) {
    throw new InvalidArgumentError(`The ${field} of ${name} is given twice. Give each field once.`);
  }
  return { ...before, [name]: { ...before[name], [known]: number } };
}

/** Applies changes to an inventory. A new inventory needs a total. */
export function changedInventory(name: string, old: Inventory | undefined, change: Partial<Inventory>): NewInventory {
  const total = change.total ?? old?.total;
  if (total === undefined)
    throw new CommandFailure(
      'wrongInput',
      `There is no inventory of ${name} yet: give its total too, as ${name}=TOTAL.`,
    );
  return { ...old, ...change, total };
}

/** `VCPU=2 MEMORY_MB=2048` */
export const resourcesText = (resources: Resources): string =>
  Object.entries(resources)
    .map(([name, amount]) => `${name}=${amount}`)
    .join(' ');

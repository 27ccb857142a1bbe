/** The largest value of the integer columns: upstream's `MAX_INT`. */
export const maxInteger = 2_147_483_647;

/** The largest ratio: what fits a float column of MySQL, upstream's SQL_SP_FLOAT_MAX. */
export const maxRatio = 3.40282e38;

/**
 * A ratio by which capacity can be reckoned. The column also takes NaN, which upstream's reshaper stores as well, and infinities:
 * any claim would fit, and JSON knows neither.
 *
 * @returns 0 for NaN, so that nothing fits; else the nearest that an inventory may have
 */
export const usableRatio = (stored: number): number =>
  Number.isNaN(stored) ? 0 : Math.max(-maxRatio, Math.min(stored, maxRatio));

/** What a provider has of one resource class, in units of that class. */
export type InventoryFields = {
  readonly total: number;
  readonly reserved: number;
  readonly minUnit: number;
  readonly maxUnit: number;
  readonly stepSize: number;
  readonly allocationRatio: number;
};

/** What an inventory is where its writer did not say. */
export const inventoryDefaults = {
  reserved: 0,
  minUnit: 1,
  maxUnit: maxInteger,
  stepSize: 1,
  allocationRatio: 1,
} as const;

/** How much of an inventory can be allocated, before rounding: this is what a claim is held against. */
export const exactCapacity = (inventory: InventoryFields): number =>
  (inventory.total - inventory.reserved) * inventory.allocationRatio;

/** Capacity as it is shown: cut towards zero, as Python's int() does. */
export const capacity = (inventory: InventoryFields): number => Math.trunc(exactCapacity(inventory));

/** Whether one allocation may have this amount, by min_unit, max_unit and step_size; capacity is another question. */
export const fitsUnits = (inventory: InventoryFields, amount: number): boolean =>
  amount >= inventory.minUnit && amount <= inventory.maxUnit && amount % inventory.stepSize === 0;

/** Whether this amount fits beside what is used, and fits the units: what makes a provider a candidate. */
export const hasRoomFor = (
  { fields, used }: { readonly fields: InventoryFields; readonly used: number },
  amount: number,
): boolean => used + amount <= exactCapacity(fields) && fitsUnits(fields, amount);

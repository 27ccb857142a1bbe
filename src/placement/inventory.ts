/** The trait of providers whose inventories the other members of their aggregates may use. */
export const sharingTrait = 'MISC_SHARES_VIA_AGGREGATE';

/** The largest value of the integer columns: upstream's `MAX_INT`. */
export const maxInteger = 2_147_483_647;

/** The largest ratio that fits into a float column of MySQL: upstream's SQL_SP_FLOAT_MAX. */
export const maxRatio = 3.40282e38;

/**
 * The ratio to compute the capacity with. The column may also have NaN, which upstream's reshaper stores as well, or
 * infinities. With these any claim would fit, and JSON has neither.
 *
 * @returns 0 for NaN, so that no claim fits; otherwise the nearest ratio that an inventory may have
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

/** The defaults of fields that a request leaves out. */
export const inventoryDefaults = {
  reserved: 0,
  minUnit: 1,
  maxUnit: maxInteger,
  stepSize: 1,
  allocationRatio: 1,
} as const;

/** How much of an inventory can be allocated, before rounding. Claims are compared with this number. */
export const exactCapacity = (inventory: InventoryFields): number =>
  (inventory.total - inventory.reserved) * inventory.allocationRatio;

/** The capacity as it is shown: rounded towards zero, as Python's int() does. */
export const capacity = (inventory: InventoryFields): number => Math.trunc(exactCapacity(inventory));

/** Whether one allocation may have this amount, by min_unit, max_unit and step_size. The capacity is not checked. */
export const fitsUnits = (inventory: InventoryFields, amount: number): boolean =>
  amount >= inventory.minUnit && amount <= inventory.maxUnit && amount % inventory.stepSize === 0;

/**
 * Whether a claim may raise the usage to this value: it is within the capacity, or not more than before the claim (upstream, since
 * March 2025).
 */
export const mayBeUsed = (inventory: InventoryFields, usage: number, before: number): boolean =>
  usage <= exactCapacity(inventory) || usage <= before;

/** The fields of an inventory while a claim is judged. */
export type JudgedFields = InventoryFields & {
  /** The usage before the claim, where that is beyond the capacity and consumers of the claim are part of it. */
  readonly tolerated?: number;
};

/** Whether this amount fits in addition to the present usage, and matches the units, so that the provider is a candidate. */
export const hasRoomFor = (
  { fields, used }: { readonly fields: JudgedFields; readonly used: number },
  amount: number,
): boolean =>
  (used + amount <= exactCapacity(fields) || isTolerated(fields, used + amount)) && fitsUnits(fields, amount);

const isTolerated = ({ tolerated = 0 }: JudgedFields, usage: number): boolean => usage <= tolerated;

/** The most that may be used, by `hasRoomFor`. */
export const usableOf = (fields: JudgedFields): number => Math.max(exactCapacity(fields), fields.tolerated ?? 0);

/** The names that resource classes may have. */
export const classNamePattern = /^[A-Z0-9_]+$/;

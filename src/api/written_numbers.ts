import { numbersAsWritten } from '../rest/python_numbers.ts';

/** The numbers of an inventory as a request wrote them, for JSON.stringify. */
export type WrittenNumbers = { readonly [field in Field]?: unknown };

const fields = ['total', 'reserved', 'min_unit', 'max_unit', 'step_size', 'allocation_ratio'] as const;
type Field = (typeof fields)[number];

/** An integer as the ratio, or another field that is written as a floating-point number. */
const unusual =
  /"allocation_ratio"\s*:\s*-?\d+\s*[,}]|"(?:total|reserved|min_unit|max_unit|step_size)"\s*:\s*-?\d+[.eE]|\\/;

/**
 * The numbers of a body with inventories, where it writes some in another way than GET shows them. The answer to such a request has
 * them as they were sent: `"allocation_ratio": 16` and not 16.0.
 *
 * @param text the body, which is valid
 * @param name of the resource class, in a body with several inventories
 */
export function writtenNumbers(text: string): (name?: string) => WrittenNumbers | undefined {
  // Programs of OpenStack write ratios with a point, and integers without one.
  if (!unusual.test(text)) return () => undefined;
  const body = Object(numbersAsWritten(text));
  return (name) => {
    const inventory = Object(name === undefined ? body : Object(body.inventories)[name]);
    return Object.fromEntries(
      fields.flatMap((field) => (Object.hasOwn(inventory, field) ? [[field, inventory[field]]] : [])),
    );
  };
}

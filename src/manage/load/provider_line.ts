import * as v from 'valibot';
import { aggregateUuid } from '../../api/resource_providers/aggregates.ts';
import { inventoryEntries, inventoryFields } from '../../api/resource_providers/inventory_bodies.ts';
import { capacity, classNamePattern, type InventoryFields } from '../../placement/inventory.ts';
import { normalUuid } from '../../placement/uuid.ts';
import { ApiError } from '../../request/errors.ts';
import { keyed, list, object, text, uuidText } from '../../rest/json_schema.ts';
import { parseUniqueKeys } from '../../rest/long_bodies.ts';
import { checkValue } from '../../rest/schema_check.ts';
import { messageOf } from '../../text/print.ts';

/** A provider of a file, with its parts. */
export type FileProvider = {
  /** The number of its line, from 1 on. */
  readonly line: number;
  readonly uuid: string;
  readonly name: string;
  readonly parentUuid: string | null;
  readonly inventories: readonly (readonly [className: string, fields: InventoryFields])[];
  readonly traits: readonly string[];
  /** As they are spelt in the file. */
  readonly aggregates: readonly string[];
};

/** A mistake in a line: the field, its value, and the reason. */
export type Problem = { readonly line: number; readonly problem: string };

const providerLine = object({
  uuid: uuidText,
  name: text({ minLength: 1, maxLength: 200 }),
  parent_provider_uuid: v.optional(v.nullable(uuidText)),
  inventories: v.optional(keyed(classNamePattern, object(inventoryEntries))),
  traits: v.optional(list(text())),
  aggregates: v.optional(list(aggregateUuid)),
});

/** Reads a line: a JSON object with the fields of the API. */
export function parseLine(line: number, content: string): FileProvider | Problem {
  const refused = (problem: string): Problem => ({ line, problem });
  let json: unknown;
  try {
    json = parseUniqueKeys(content);
  } catch (error) {
    return refused(`${error instanceof SyntaxError ? 'it is not JSON: ' : ''}${messageOf(error)}`);
  }
  try {
    const { uuid, name, parent_provider_uuid, inventories, traits, aggregates } = checkValue(json, providerLine, '');
    const provider: FileProvider = {
      line,
      uuid: normalUuid(uuid),
      name,
      parentUuid: parent_provider_uuid == null ? null : normalUuid(parent_provider_uuid),
      inventories: Object.entries(inventories ?? {}).map(([className, fields]) => [className, inventoryFields(fields)]),
      traits: [...new Set(traits)],
      aggregates: [...new Set(aggregates)],
    };
    for (const [className, fields] of provider.inventories) {
      if (capacity(fields) >= 0) continue;
      return refused(`inventories.${className}.reserved: ${fields.reserved} is more than the total of ${fields.total}`);
    }
    return provider;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return refused((error.sentence ?? error.message).replace(/^: /, ''));
  }
}

import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import type { Provider } from '../fleet/provider.ts';
import type { InventoryFields } from '../placement/inventory.ts';
import { asciiJson } from '../text/ascii_json.ts';
import { inventoryShape } from './inventory_answers.ts';

/**
 * Writes whole providers as JSON. Many hosts have equal inventories, traits and aggregates. The fleet keeps each of these
 * lists once for all providers that have it, and so its text is made only once as well. The names are those of now, also when the fleet has changed.
 */
export function summaryWriter({ traits, classes }: Fleet): (provider: Provider) => string {
  const inventoryText = kept((fields: InventoryFields) => asciiJson(inventoryShape(fields)));
  const traitsText = kept((ids: readonly number[]) => asciiJson(ids.map((id) => nameOf(traits, id))));
  const aggregatesText = kept((uuids: readonly string[]) => asciiJson(uuids));
  const className = kept((id: number) => asciiJson(nameOf(classes, id)));
  return (provider) => {
    let inventories = '';
    let usages = '';
    for (const { fields, used } of provider.inventories) {
      const comma = usages === '' ? '' : ', ';
      const name = className(fields.classId);
      inventories += `${comma}${name}: ${inventoryText(fields)}`;
      usages += `${comma}${name}: ${used}`;
    }
    const parent = provider.parent === undefined ? 'null' : `"${provider.parent.uuidText}"`;
    return (
      `{"uuid": "${provider.uuidText}", "name": ${asciiJson(provider.name)}, "generation": ${provider.generation}, ` +
      `"parent_provider_uuid": ${parent}, "root_provider_uuid": "${provider.root.uuidText}", ` +
      `"inventories": {${inventories}}, "usages": {${usages}}, "traits": ${traitsText(provider.traitIds)}, ` +
      `"aggregates": ${aggregatesText(provider.aggregates)}}`
    );
  };
}

/** A function that remembers what it has made of each object. */
function kept<Key>(make: (key: Key) => string): (key: Key) => string {
  const texts = new Map<Key, string>();
  return (key) => {
    let text = texts.get(key);
    if (text === undefined) {
      text = make(key);
      texts.set(key, text);
    }
    return text;
  };
}

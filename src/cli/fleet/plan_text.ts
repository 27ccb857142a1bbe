import type { Inventory } from '../../client/index.ts';
import { escapeControls } from '../../text/print.ts';
import { inventoryFields } from '../amounts.ts';
import { defaultFields, type FleetPlan, type ProviderStep } from './plan.ts';

/** The difference of one provider, in lines. */
export function stepText(step: ProviderStep, aggregateNames: ReadonlyMap<string, string>): string {
  const { name, generation, parent, traits, aggregates, inventories } = step;
  const isNew = generation === undefined;
  const below = parent?.after == null ? '' : `, below ${escapeControls(parent.after)}`;
  const aggregate = (uuid: string) => escapeControls(aggregateNames.get(uuid.toLowerCase()) ?? uuid);
  return [
    `${isNew ? '+' : '~'} ${escapeControls(name)}${isNew ? ` (new${below})` : ''}`,
    ...(isNew || parent === undefined
      ? []
      : [`    parent: ${escapeControls(parent.before ?? 'none')} -> ${escapeControls(parent.after ?? 'none')}`]),
    ...inventories.map(({ resource_class: one, before, after }) => `    ${inventoryText(one, before, after)}`),
    ...traits.added.map((trait) => `    + trait ${trait}`),
    ...traits.removed.map((trait) => `    - trait ${trait}`),
    ...aggregates.added.map((uuid) => `    + aggregate ${aggregate(uuid)}`),
    ...aggregates.removed.map((uuid) => `    - aggregate ${aggregate(uuid)}`),
  ].join('\n');
}

function inventoryText(name: string, before: Inventory | undefined, after: Inventory | undefined): string {
  if (after === undefined) return `- inventory ${name}`;
  if (before === undefined) {
    const chosen = inventoryFields.filter((field) => field === 'total' || after[field] !== defaultFields[field]);
    return `+ inventory ${name}: ${chosen.map((field) => `${field} ${after[field]}`).join(', ')}`;
  }
  const changed = inventoryFields.filter((field) => before[field] !== after[field]);
  return `${name}: ${changed.map((field) => `${field} ${before[field]} -> ${after[field]}`).join(', ')}`;
}

/** All differences, for people. */
export function planText(plan: FleetPlan, aggregateNames: ReadonlyMap<string, string>): string {
  const { newClasses, newTraits, nearNames, waves, deletions, kept } = plan;
  const isIt = (name: string): string => {
    const near = nearNames.get(name);
    return near === undefined ? '' : ` (is it ${near}, which exists?)`;
  };
  return [
    ...newClasses.map((name) => `+ resource class ${name}${isIt(name)}`),
    ...newTraits.map((name) => `+ trait ${name}${isIt(name)}`),
    ...waves.flat().map((step) => stepText(step, aggregateNames)),
    ...deletions.flat().map(({ name }) => `- ${escapeControls(name)}`),
    ...kept.map(
      ({ name, why }) => `! ${escapeControls(name)} is gone from the file and is kept: ${escapeControls(why)}`,
    ),
  ].join('\n');
}

/** All differences, for programs. */
export const planJson = (plan: FleetPlan) => ({
  resource_classes: plan.newClasses,
  traits: plan.newTraits,
  providers: plan.waves.flat().map(({ name, uuid, generation, parent, traits, aggregates, inventories }) => ({
    action: generation === undefined ? 'create' : 'change',
    name,
    uuid,
    ...(parent === undefined ? {} : { parent }),
    inventories,
    traits,
    aggregates,
  })),
  deleted: plan.deletions.flat().map(({ name, uuid }) => ({ name, uuid })),
  kept: plan.kept,
  unchanged: plan.unchanged,
});

/** Whether there is nothing to do. */
export const isEmpty = ({ newClasses, newTraits, waves, deletions }: FleetPlan): boolean =>
  newClasses.length + newTraits.length + waves.length + deletions.length === 0;

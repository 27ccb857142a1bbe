import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import type { Provider } from '../fleet/provider.ts';
import { type Candidate, type Choice, providerOf, type ShownChoice } from './candidate.ts';
import { asciiJson } from './json_chunks.ts';

/** What a candidate takes of each provider, by class: of a class that several groups ask for, the sum. */
export function resourcesByProvider(candidate: Candidate): Map<Provider, Map<number, number>> {
  const byProvider = new Map<Provider, Map<number, number>>();
  for (const choice of candidate) {
    for (const [place, { classId, amount }] of choice.group.resources.entries()) {
      const provider = providerOf(choice, place);
      if (provider === undefined) continue;
      let resources = byProvider.get(provider);
      if (resources === undefined) {
        resources = new Map();
        byProvider.set(provider, resources);
      }
      resources.set(classId, (resources.get(classId) ?? 0) + amount);
    }
  }
  return byProvider;
}

/** Texts of `{"VCPU": 1, ...}`: the same few amounts recur in most candidates. */
export function resourceTexts(fleet: Fleet): (resources: ReadonlyMap<number, number>) => string {
  const names = new Map<number, string>();
  const nameText = (classId: number): string => {
    let text = names.get(classId);
    if (text === undefined) {
      text = asciiJson(nameOf(fleet.classes, classId));
      names.set(classId, text);
    }
    return text;
  };
  return (resources) => {
    let text = '';
    for (const [classId, amount] of resources) text += `${text === '' ? '' : ', '}${nameText(classId)}: ${amount}`;
    return `{"resources": {${text}}`;
  };
}

type ResourcesText = ReturnType<typeof resourceTexts>;

export const allocationsText = (
  byProvider: ReadonlyMap<Provider, ReadonlyMap<number, number>>,
  resourcesText: ResourcesText,
): string => [...byProvider].map(([{ uuid }, resources]) => `"${uuid}": ${resourcesText(resources)}}`).join(', ');

/** How the resources of groups, and choices of them, are shown: each is written once. */
export function choiceTexts(resourcesText: ResourcesText): {
  groupText(group: Choice['group']): string;
  shown(choice: Choice): ShownChoice;
} {
  const ofGroups = new Map<Choice['group'], string>();
  const groupText = (group: Choice['group']): string => {
    let text = ofGroups.get(group);
    if (text === undefined) {
      text = resourcesText(new Map(group.resources.map(({ classId, amount }) => [classId, amount])));
      ofGroups.set(group, text);
    }
    return text;
  };
  const show = (choice: Choice): ShownChoice => {
    const { group, providers } = choice;
    // Suffixes are letters, digits, dashes and underscores, and UUIDs are UUIDs: nothing needs escaping.
    const only = onlyOne(providers);
    if (only !== undefined) {
      return {
        allocations: group.resources.length === 0 ? '' : `"${only.uuid}": ${groupText(group)}}`,
        mapping: `"${group.suffix}": ["${only.uuid}"]`,
      };
    }
    const uuids = [...new Set(providers)].map(({ uuid }) => `"${uuid}"`).join(', ');
    return {
      allocations: allocationsText(resourcesByProvider([choice]), resourcesText),
      mapping: `"${group.suffix}": [${uuids}]`,
    };
  };
  return {
    groupText,
    shown: (choice) => {
      choice.shown ??= show(choice);
      return choice.shown;
    },
  };
}

/** The provider that all of a list are. */
export function onlyOne(providers: readonly Provider[]): Provider | undefined {
  for (let place = 1; place < providers.length; place++) if (providers[place] !== providers[0]) return undefined;
  return providers[0];
}

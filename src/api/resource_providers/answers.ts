import type { Fleet } from '../../fleet/model/fleet.ts';
import type { Provider } from '../../fleet/model/provider.ts';
import { providerTag } from '../../placement/entity_tag.ts';
import { since } from '../../placement/microversions.ts';
import type { ApiRequest } from '../../rest/endpoint.ts';
import { tagged } from '../answers.ts';

/*
 * How a provider is shown.
 */

/** What answers have of a provider. */
export type ShownProvider = {
  readonly uuid: string;
  readonly name: string;
  readonly generation: number;
  readonly parentUuid: string | null;
  readonly rootUuid: string;
};

/** A provider of the fleet as answers have it. */
export const shownProvider = ({ uuid, name, generation, parent, root }: Provider): ShownProvider => ({
  uuid,
  name,
  generation,
  parentUuid: parent?.uuid ?? null,
  rootUuid: root.uuid,
});

/**
 * A provider as a write left it. Later changes are not in it, and a deletion does not matter: with their entity tag, a client
 * that has not read them would overwrite them.
 *
 * @param shown has the write, and maybe later ones
 */
export const providerAsWritten = (
  shown: Fleet,
  {
    parent,
    ...written
  }: Pick<ShownProvider, 'uuid' | 'name' | 'generation'> & { readonly parent: Provider | undefined },
): ShownProvider => ({
  ...written,
  parentUuid: parent?.uuid ?? null,
  rootUuid: (shown.byUuid.get(written.uuid) ?? parent)?.root.uuid ?? written.uuid,
});

/** The links of a provider, each with the version that introduced the linked resource. */
const links: readonly (readonly [rel: string, since: number])[] = [
  ['inventories', since.firstVersion],
  ['usages', since.firstVersion],
  ['aggregates', since.aggregates],
  ['traits', since.traits],
  ['allocations', since.allocationLinks],
];

/** The body of an answer with a provider, and its tag. */
export const represent = (provider: ShownProvider, request: ApiRequest) =>
  tagged(request, shape(provider, request), () => providerTag(provider));

/**
 * Writes providers as JSON, each as `represent` has it: a list has tens of thousands of them, and to make the text directly takes
 * a third of the time.
 */
export function providerWriter({
  prefix,
  version,
}: Pick<ApiRequest, 'prefix' | 'version'>): (provider: Provider) => string {
  const path = JSON.stringify(pathOf(prefix, '')).slice(0, -1);
  const rels = relsAt(version);
  const isNested = version >= since.nestedProviders;
  const isTagged = version >= since.entityTags;
  return (provider) => {
    // A text that is escaped for a URL needs no further escapes in JSON.
    const self = path + encodeURIComponent(provider.uuid);
    let text = `{"uuid":${quoted(provider)},"name":${JSON.stringify(provider.name)},"generation":${provider.generation}`;
    text += `,"links":[{"rel":"self","href":${self}"}`;
    for (const rel of rels) text += `,{"rel":"${rel}","href":${self}/${rel}"}`;
    text += ']';
    if (isNested) {
      const { parent, root } = provider;
      text += `,"parent_provider_uuid":${parent === undefined ? 'null' : quoted(parent)},"root_provider_uuid":${quoted(root)}`;
    }
    if (isTagged) text += `,"etag":${JSON.stringify(providerTag(shownProvider(provider)))}`;
    return `${text}}`;
  };
}

const quoted = ({ uuid }: Provider): string => JSON.stringify(uuid);

/** The API takes UUIDs only; other programs may have written texts that must be escaped in a URL. */
const pathOf = (prefix: string, uuid: string): string => `${prefix}/resource_providers/${encodeURIComponent(uuid)}`;

const relsAt = (version: number): readonly string[] =>
  links.filter(([, brought]) => brought <= version).map(([rel]) => rel);

function shape(provider: ShownProvider, request: ApiRequest) {
  const self = pathOf(request.prefix, provider.uuid);
  return {
    uuid: provider.uuid,
    name: provider.name,
    generation: provider.generation,
    links: [{ rel: 'self', href: self }, ...relsAt(request.version).map((rel) => ({ rel, href: `${self}/${rel}` }))],
    ...(request.version >= since.nestedProviders
      ? { parent_provider_uuid: provider.parentUuid, root_provider_uuid: provider.rootUuid }
      : {}),
  };
}

import type { Fleet } from '../fleet/fleet.ts';
import type { Provider } from '../fleet/provider.ts';
import { providerTag } from '../placement/entity_tag.ts';
import type { ApiRequest } from '../rest/endpoint.ts';
import { since } from '../rest/microversions.ts';
import { tagged } from './entity_tags.ts';

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

/** The links of a provider, each with the version that brought the resource behind it. */
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

function shape(provider: ShownProvider, request: ApiRequest) {
  // The API takes UUIDs only; other programs may have written texts that must be escaped in a URL.
  const self = `${request.prefix}/resource_providers/${encodeURIComponent(provider.uuid)}`;
  return {
    uuid: provider.uuid,
    name: provider.name,
    generation: provider.generation,
    links: [
      { rel: 'self', href: self },
      ...links.filter(([, brought]) => brought <= request.version).map(([rel]) => ({ rel, href: `${self}/${rel}` })),
    ],
    ...(request.version >= since.nestedProviders
      ? { parent_provider_uuid: provider.parentUuid, root_provider_uuid: provider.rootUuid }
      : {}),
  };
}

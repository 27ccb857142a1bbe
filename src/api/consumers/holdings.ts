import * as v from 'valibot';
import { type HoldingRow, listHoldings } from '../../../db/statements/consumers/list_holdings.ts';
import type { Fleet } from '../../fleet/model/fleet.ts';
import { incompleteOwner } from '../../placement/consumer.ts';
import { since } from '../../placement/microversions.ts';
import { unknownClassParameter } from '../../request/errors.ts';
import type { Answer, ApiRequest, Endpoint } from '../../rest/endpoint.ts';
import { object, text } from '../../rest/json_schema.ts';
import { checkUnrepeated } from '../../rest/schema_check.ts';
import { timeText } from '../../text/strings.ts';
import { newest, nextLink, pageParameters, usualLimit } from '../answers.ts';
import type { Dependencies } from '../dependencies.ts';
import { ownerOf } from './consumer.ts';
import { checkConsumerMarker, namePartParameter, ofOneProject, ownerParameters, readOnNamed } from './filter.ts';

// Routes

const path = '/holdings';

export const holdingEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'GET',
    path,
    since: since.names,
    policy: 'placement:holdings:list',
    policyTarget: ofOneProject,
    answersJson: true,
    takesParameters: true,
    handle: list,
  },
];

// Request schemas

const parameters = object({
  ...ownerParameters,
  ...namePartParameter,
  resource_class: v.optional(text()),
  ...pageParameters(1000),
});

// Handlers

/** What consumers hold, one row for each consumer and provider: a page is of one snapshot, and has all rows of each of its consumers. */
async function list(request: ApiRequest, { config, database, fleet }: Dependencies): Promise<Answer> {
  const { limit = usualLimit, marker, ...filters } = checkUnrepeated(request.query(), parameters);
  await checkConsumerMarker(database, marker);
  const { resource_class: className } = filters;
  const classId = className === undefined ? undefined : idOfClass(className, (await fleet.fresh()).classes);
  const query = {
    projectId: filters.project_id,
    userId: filters.user_id,
    consumerType: filters.consumer_type,
    namePart: filters.name_contains,
    classId,
    marker,
    limit,
    incomplete: incompleteOwner(config),
  };
  const page = await readOnNamed(fleet, filters, ({ providers: [first, other], tree }) => {
    // One provider, and a tree that it is not in.
    const providers = other === undefined ? first : [];
    return listHoldings(database, { ...query, providers }, tree);
  });
  return {
    status: 200,
    json: {
      holdings: page.rows.map((row) => represent(row, config)),
      ...(page.next === undefined ? {} : { holdings_links: nextLink(request, path, page.next) }),
    },
    lastModified: newest(page.rows.map((row) => row.since?.getTime())),
  };
}

/** @throws ApiError 400 for a class that does not exist */
function idOfClass(name: string, classes: Fleet['classes']): number {
  const id = classes.byName.get(name)?.id;
  if (id === undefined) throw unknownClassParameter(name, classes);
  return id;
}

// Response shapes

const represent = (row: HoldingRow, config: Dependencies['config']): object => ({
  consumer: row.consumer,
  name: row.name,
  ...ownerOf(row, config),
  resource_provider: { uuid: row.providerUuid, name: row.providerName },
  root: { uuid: row.rootUuid, name: row.rootName },
  resources: row.resources,
  since: timeText(row.since),
  expires_at: timeText(row.expires),
});

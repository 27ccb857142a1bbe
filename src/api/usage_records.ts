import * as v from 'valibot';
import {
  listEndedRecords,
  listOpenRecords,
  sumUsage,
  type TotalKey,
  totalKeys,
  type UsageFilter,
  type UsagePosition,
  type UsageRecordRow,
  type UsageTotalRow,
} from '../../db/statements/usage_records.ts';
import type { Config } from '../config/config.ts';
import { incompleteOwner } from '../placement/consumer.ts';
import { since } from '../placement/microversions.ts';
import { spellingsOf } from '../placement/uuid.ts';
import { badRequest } from '../request/errors.ts';
import type { Answer, ApiRequest, Endpoint } from '../rest/endpoint.ts';
import { object, oneOf, text, time, uuidText } from '../rest/json_schema.ts';
import { checkUnrepeated } from '../rest/schema_check.ts';
import { failed } from '../rest/schema_complaint.ts';
import { timeText } from '../text/strings.ts';
import { consumerName } from './allocations/bodies.ts';
import { pageJson, pageParameters, usualLimit } from './answers.ts';
import { ownerOf } from './consumers/consumer.ts';
import { ofOneProject, ownerParameters, treeNamed } from './consumers/filter.ts';
import type { Dependencies } from './dependencies.ts';

// Routes

const path = '/usage_records';
const shared = {
  method: 'GET',
  since: since.names,
  policy: 'placement:usage_records:list',
  policyTarget: ofOneProject,
  answersJson: true,
  takesParameters: true,
} as const;

export const usageRecordEndpoints: readonly Endpoint<Dependencies>[] = [
  { ...shared, path, handle: list },
  { ...shared, path: '/usage_totals', handle: sum },
];

// Request schemas

const filters = {
  consumer: v.optional(uuidText),
  name: v.optional(consumerName),
  ...ownerParameters,
  resource_class: v.optional(text()),
  from: v.optional(time),
  until: v.optional(time),
};
const recordParameters = object({
  ...filters,
  open: v.optional(oneOf(['true', 'false'])),
  ...pageParameters(1000),
});

const isKey = (name: string): name is TotalKey => totalKeys.some((key) => key === name);
const totalParameters = object({
  ...filters,
  by: v.pipe(
    text(),
    v.check(
      (value) => value.split(',').every(isKey) && new Set(value.split(',')).size === value.split(',').length,
      failed('pattern', (value) => `${value} is not a list of different ones of ${totalKeys.join(', ')}`),
    ),
  ),
});

/** The largest number of sums of one answer. */
const mostTotals = 10_000;

// Handlers

/**
 * Open records come before closed ones. A record that is closed meanwhile is in the answer, perhaps twice: the second time with its end.
 */
async function list(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const requested = checkUnrepeated(request.query(), recordParameters);
  const { limit = usualLimit, marker, open } = requested;
  const after = marker === undefined ? undefined : (readPosition(marker) ?? refuseMarker(marker));
  const filter = await filterOf(requested, dependencies);
  const { database, config } = dependencies;
  const found: UsageRecordRow[] = [];
  if (after?.of !== 'ended' && open !== 'false')
    found.push(...(await listOpenRecords(database, filter, after, limit + 1)));
  if (found.length <= limit && open !== 'true') {
    const behind = after?.of === 'ended' ? after : undefined;
    found.push(...(await listEndedRecords(database, filter, behind, limit + 1 - found.length)));
  }
  const json = pageJson(request, path, found, {
    limit,
    represent: (record) => represent(record, config),
    markerOf: positionText,
  });
  return { status: 200, json, lastModified: new Date() };
}

async function sum(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const requested = checkUnrepeated(request.query(), totalParameters);
  const by = requested.by.split(',').filter(isKey);
  const totals = await sumUsage(dependencies.database, await filterOf(requested, dependencies), by, mostTotals + 1);
  if (totals.length > mostTotals) {
    throw badRequest(
      `There are more than ${mostTotals} sums by ${by.join(', ')}. Ask for a shorter time, for one project, or by less.`,
    );
  }
  return {
    status: 200,
    json: { usage_totals: totals.map((total) => representTotal(total, by)) },
    lastModified: new Date(),
  };
}

type RecordFilters = v.InferOutput<ReturnType<typeof object<typeof filters>>>;

/** @throws ApiError 400 where `until` is not after `from`, or the provider of `in_tree` does not exist */
async function filterOf(requested: RecordFilters, { config, fleet }: Dependencies): Promise<UsageFilter> {
  const { from, until, resource_provider: named, in_tree: inTree } = requested;
  if (from !== undefined && until !== undefined && until <= from) {
    throw badRequest(
      `Invalid query string parameters: 'until' is not after 'from'. Got: ${until.toISOString()} and ${from.toISOString()}`,
    );
  }
  const tree = inTree === undefined ? undefined : treeNamed(await fleet.fresh(), inTree).map(({ uuid }) => uuid);
  const provider = named === undefined ? undefined : spellingsOf(named);
  return {
    consumers: requested.consumer === undefined ? undefined : spellingsOf(requested.consumer),
    name: requested.name,
    projectId: requested.project_id,
    userId: requested.user_id,
    consumerType: requested.consumer_type,
    providers: provider === undefined ? tree : provider.filter((uuid) => tree?.includes(uuid) !== false),
    className: requested.resource_class,
    from,
    until,
    incomplete: incompleteOwner(config),
  };
}

const positionText = ({ id, consumer, untilMicros }: UsageRecordRow): string =>
  untilMicros === null ? `open-${id}-${consumer}` : `ended-${id}-${untilMicros}`;

function readPosition(marker: string): UsagePosition | undefined {
  const [, of, id, rest = ''] = /^(open|ended)-([0-9]{1,15})-(.{0,36})$/su.exec(marker) ?? [];
  if (of === 'open') return { of, id: Number(id), consumer: rest };
  return of === 'ended' && /^[0-9]{1,18}$/.test(rest) ? { of, id: Number(id), untilMicros: rest } : undefined;
}

function refuseMarker(marker: string): never {
  throw badRequest(
    `Invalid query string parameters: 'marker' is not that of a link to a next page. Take it from there as it is. Got: ${marker}`,
  );
}

// Response shapes

const represent = (record: UsageRecordRow, config: Config): object => ({
  consumer: record.consumer,
  name: record.name,
  ...ownerOf(record, config),
  resource_provider: { uuid: record.providerUuid, name: record.providerName },
  resource_class: record.className,
  amount: record.amount,
  from: timeText(record.began),
  until: timeText(record.until),
  ended: record.ended,
});

const representTotal = (
  { amountHours, providerName = null, ...keys }: UsageTotalRow,
  by: readonly TotalKey[],
): object => ({
  ...Object.fromEntries(
    by.map((key) => [key, key === 'resource_provider' ? { uuid: keys[key], name: providerName } : keys[key]]),
  ),
  amount_hours: amountHours,
});

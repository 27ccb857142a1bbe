/** Every parameter of a query in openapi.yaml has a field in the client's type of that query, and the client sends it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type CandidateQuery,
  type ConsumerQuery,
  connect,
  type HoldingQuery,
  type ProviderFilter,
  type ProviderQuery,
  type SummaryQuery,
  type TraitQuery,
  type UsageQuery,
  type UsageRecordQuery,
} from '../../src/client/index.ts';
import type { Page } from '../../src/client/pages.ts';
import { operations } from '../openapi/contract.ts';
import { isObject, type JsonObject, referenced } from '../openapi/document.ts';
import { newestVersion } from '../support/requests.ts';
import { startFront } from './servers.ts';

const uuid = '4e8e5957-649f-477b-9e5b-f1f75b21c03c';

// Each value has every field of its type: a new field of a type does not compile until it is added here, and is sent below.
const filter: Required<ProviderFilter> = { resources: { VCPU: 1 }, required: ['A'], member_of: [uuid], in_tree: uuid };
const page: Required<Page> = { limit: 1, marker: uuid };
const providers: Required<ProviderQuery> = { ...filter, name: 'n', uuid };
const traits: Required<TraitQuery> = { name: 'startswith:A', associated: true };
const usages: Required<UsageQuery> = { project_id: 'p', user_id: 'u', consumer_type: 'all' };
const candidates: Required<CandidateQuery> = {
  ...filter,
  groups: { 1: filter, _A: filter },
  group_policy: 'none',
  limit: 1,
  root_required: ['A'],
  same_subtree: [['1', '_A']],
  order: ['random'],
  apart_from: [uuid],
  with: [uuid],
};
const consumers: Required<ConsumerQuery & Page> = {
  ...page,
  project_id: 'p',
  user_id: 'u',
  consumer_type: 'unknown',
  resource_provider: uuid,
  in_tree: uuid,
  expiring_before: '2030-01-01T00:00:00Z',
  name: 'train-7',
  name_contains: 'train',
};
const holdings: Required<HoldingQuery & Page> = {
  ...page,
  name_contains: 'train',
  project_id: 'p',
  user_id: 'u',
  consumer_type: 'unknown',
  resource_provider: uuid,
  in_tree: uuid,
  resource_class: 'VCPU',
};
const records: Required<UsageRecordQuery> = {
  consumer: uuid,
  name: 'train-7',
  project_id: 'p',
  user_id: 'u',
  consumer_type: 'unknown',
  resource_provider: uuid,
  in_tree: uuid,
  resource_class: 'VCPU',
  from: '2030-01-01T00:00:00Z',
  until: new Date(),
};
const summaries: Required<SummaryQuery & Page> = {
  ...page,
  uuids: [uuid],
  in_tree: uuid,
  member_of: [uuid],
  required: ['A'],
};

/** The names of the parameters that a group of a request may have, as openapi.yaml writes them. */
const asWritten = (name: string): readonly string[] => {
  const [, parameter, suffix] = /^(resources|required|member_of|in_tree)(1|_A)$/.exec(name) ?? [];
  if (parameter === undefined) return [name];
  return suffix === '1' ? [`${parameter}{N}`, `${parameter}{suffix}`] : [`${parameter}{suffix}`];
};

/** The names of the query parameters of an operation, of all versions. */
const written = ({ parameters }: JsonObject): readonly string[] =>
  (Array.isArray(parameters) ? parameters : [])
    .filter(isObject)
    .map((parameter) => (typeof parameter.$ref === 'string' ? referenced(parameter.$ref) : parameter))
    .filter((parameter) => parameter.in === 'query')
    .map(({ name }) => String(name));

test('the client can send each parameter of a query', async () => {
  const front = await startFront((incoming, response) => {
    response.writeHead(200, {
      'content-type': 'application/json',
      'openstack-api-version': `placement ${newestVersion}`,
    });
    const none = {
      allocation_requests: [],
      provider_summaries: [],
      resource_providers: [],
      consumers: [],
      tokens: [],
      limits: [],
      waiting: [],
      holdings: [],
      usage_totals: [],
      usage_records: [],
      // One more page.
      ...(incoming.url?.includes('marker=')
        ? {}
        : { usage_records_links: [{ href: '/usage_records?marker=open-1-c' }] }),
    };
    response.end(JSON.stringify({ ...none, traits: [], usages: {}, changes: [{ traits: true }], next: 'token' }));
  });
  try {
    const client = connect({ endpoint: front.url, auth: 'admin', version: newestVersion });
    await client.providers.list(providers);
    await client.traits.list(traits);
    await client.usages.ofProject(usages);
    await client.candidates(candidates);
    const { limit, ...unlimited } = candidates;
    await client.candidateQuestions.explain({ ...unlimited, nearest: 1, tree: uuid });
    await client.candidateQuestions.count({ ...unlimited, max: 1, top: limit });
    await client.consumers.page(consumers);
    await client.holdings.page(holdings);
    for await (const _ of client.usageRecords.list({ ...records, open: true })) assert.fail();
    await client.usageRecords.totals(['day'], records);
    await client.tokens.page({ project_id: 'p', user_id: 'u', limit: 1, marker: uuid });
    await client.limits.page({ limit: 1, marker: 'p' });
    await client.limits.delete('{project_id}', { generation: 1 });
    await client.waiting.page({ project_id: 'p', line: 'l', limit: 1, marker: uuid });
    await client.limits.deleteDefaults({ generation: 1 });
    await client.providerSummaries.page(summaries);
    const followed = client.changes({ parts: ['usages'], since: 'token', resource_class: 'VCPU', in_tree: uuid });
    await followed.next();
    await followed.return();
  } finally {
    await front.close();
  }
  const sent = new Map<string, Set<string>>();
  for (const { method, url } of front.seen) {
    const { pathname, searchParams } = new URL(url, front.url);
    const operation = `${method} ${decodeURIComponent(pathname)}`;
    const names = sent.get(operation) ?? new Set();
    for (const name of searchParams.keys()) for (const each of asWritten(name)) names.add(each);
    sent.set(operation, names);
  }
  const missing = operations().flatMap(({ method, path, operation }) =>
    written(operation)
      .filter((name) => !sent.get(`${method} ${path}`)?.has(name))
      .map((name) => `${method} ${path}: ${name}`),
  );
  assert.deepEqual(missing, []);
});

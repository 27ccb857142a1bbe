/** Tokens without a project, where their scope is not enforced: they are of no project, not of a missing one. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { accepted, makeProvider, newClaim, newestVersion, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

type Caller = Readonly<Record<string, string>>;

const withoutProject: Readonly<Record<string, Caller>> = {
  system: { 'openstack-system-scope': 'all' },
  'domain and system': { 'openstack-system-scope': 'all', 'x-domain-id': 'd1' },
};
const overrides = { osloPolicy: { enforceScope: false } };

test('with enforce_scope = false a reader of a domain or the system lists no consumers and usages of projects', async () => {
  await withTestService(anyEngine, overrides, async (service) => {
    const send = requestsTo(service);
    const host = randomUUID();
    await makeProvider(send, host, { VCPU: { total: 8 } });
    accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 1 } })));
    const statusOf = async (path: string, caller: Caller): Promise<number> => {
      const headers = { 'x-auth-token': 'u1', 'openstack-api-version': `placement ${newestVersion}`, ...caller };
      return (await service.app.request(path, { headers })).status;
    };
    const filters = ['', 'project_id=None', `resource_provider=${host}`, `in_tree=${host}`, 'user_id=u1', 'limit=1'];
    const paths = [
      ...filters.map((filter) => `/consumers?${filter}`),
      ...filters.map((filter) => `/usages?${filter}`),
      `/consumers?project_id=None&in_tree=${host}`,
    ];
    for (const [scope, caller] of Object.entries(withoutProject)) {
      for (const path of paths) {
        const reader = { ...caller, 'x-roles': 'reader' };
        assert.equal(await statusOf(path, reader), 403, `${scope} ${path}`);
      }
      assert.equal(await statusOf('/consumers', { ...caller, 'x-roles': 'admin' }), 200, scope);
    }
    const ofProject = { 'x-auth-token': 'u1:p1', 'x-roles': 'reader' };
    assert.equal(await statusOf('/consumers?project_id=p1', ofProject), 200);
    assert.equal(await statusOf('/consumers', ofProject), 403);
  });
});

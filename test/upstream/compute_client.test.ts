/**
 * All commands of OpenStack's own client for compute services and hypervisors work with the registry, at each version
 * that differs.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { suite, test } from 'node:test';
import { promisify } from 'node:util';
import { listen } from '../../src/http/server/listen.ts';
import { services, withRegistry } from '../compute/nova.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const [one, two, server] = [1, 2, 3].map((n) => `00000000-0000-4000-8000-00000000000${n}`) as [string, string, string];
const line = ' 08:32:11 up 93 days, 18:25, 12 users,  load average: 0.20, 0.12, 0.14';

/** Runs a command, as typed after `openstack`. @returns its output as JSON; undefined if there is none */
type Openstack = (...command: readonly string[]) => Promise<unknown>;

/** Runs the client at a version. Rejects with the output of the client if its exit code is not 0. */
const clientAt =
  (url: string, version: string): Openstack =>
  async (...command) => {
    const shows = !['set', 'delete'].includes(command[2] ?? '');
    const access = ['--os-auth-type', 'admin_token', '--os-endpoint', `${url}/compute/v2.1`, '--os-token', 'admin'];
    const args = ['--os-compute-api-version', version, ...command, ...(shows ? ['-f', 'json'] : [])];
    const { stdout } = await promisify(execFile)('/usr/bin/openstack', [...access, ...args]);
    return stdout === '' ? undefined : JSON.parse(stdout);
  };

suite('the client of OpenStack', () => {
  for (const version of ['2.1', '2.11', '2.53', '2.75']) {
    test(`works at ${version}`, async () => {
      // The agents report once only; on a busy machine the commands take longer than the usual time of a minute.
      const patient = { compute: { ...withRegistry.compute, serviceDownTime: 3600 } };
      await withTestService('postgresql', patient, async (service) => {
        const { url, close } = await listen(service.app, { host: '127.0.0.1', port: 0 });
        try {
          const send = requestsTo(service);
          await makeProvider(
            send,
            one,
            { VCPU: { total: 8 }, MEMORY_MB: { total: 4096, reserved: 512 } },
            { name: 'host-1' },
          );
          await makeProvider(send, two, { VCPU: { total: 4 }, DISK_GB: { total: 100 } }, { name: 'host-2' });
          accepted(await send('PUT', `/allocations/${server}`, newClaim({ [one]: { VCPU: 2 } })));
          const agents = [
            { host: 'host-1', binary: 'nova-compute', uptime: line },
            { host: 'host-2', binary: 'nova-compute' },
          ];
          accepted(await send('POST', services, { services: agents }, 'compute 2.53'));
          await runAll(clientAt(url, version), Number(version.split('.')[1]));
        } finally {
          await close();
        }
      });
    });
  }
});

async function runAll(openstack: Openstack, minor: number): Promise<void> {
  const setService = (...options: readonly string[]) =>
    openstack('compute', 'service', 'set', ...options, 'host-1', 'nova-compute');
  const showService = async (host = 'host-1') => at(await listServices('--host', host, '--long'), 0);
  const listServices = (...options: readonly string[]) => openstack('compute', 'service', 'list', ...options);

  // Services
  assert.equal((await listed(listServices())).length, 2);
  assert.equal((await listed(listServices('--service', 'nova-conductor'))).length, 0);
  await setService('--disable', '--disable-reason', 'moving house');
  const disabled = await showService();
  assert.deepEqual([at(disabled, 'Status'), at(disabled, 'Disabled Reason')], ['disabled', 'moving house']);
  await setService('--enable');
  assert.equal(at(await showService(), 'Status'), 'enabled');

  // Hypervisors
  const hypervisors = await listed(openstack('hypervisor', 'list', '--long'));
  assert.deepEqual(
    hypervisors.map((each) => [at(each, 'Hypervisor Hostname'), at(each, 'vCPUs Used'), at(each, 'vCPUs')]),
    [
      ['host-1', 2, 8],
      ['host-2', 0, 4],
    ],
  );
  const found = await listed(openstack('hypervisor', 'list', '--matching', 'host-2'));
  assert.deepEqual(
    found.map((each) => at(each, 'ID')),
    [minor >= 53 ? two : 2],
  );
  const statistics = await openstack('hypervisor', 'stats', 'show');
  assert.deepEqual(
    ['count', 'vcpus', 'vcpus_used', 'memory_mb_used', 'free_disk_gb', 'running_vms'].map((name) =>
      at(statistics, name),
    ),
    [2, 12, 2, 512, 100, 1],
  );
  if (minor >= 33) {
    const paged = await listed(openstack('hypervisor', 'list', '--limit', '1', '--marker', one));
    assert.deepEqual(
      paged.map((each) => at(each, 'ID')),
      [two],
    );
  } else {
    await assert.rejects(openstack('hypervisor', 'list', '--limit', '1'), /2\.33 or greater is required/);
  }

  // One hypervisor, by its name and by its id. The uptime of the first is known.
  const show = (which: string) => openstack('hypervisor', 'show', which);
  for (const which of ['host-1', minor >= 53 ? one : '1']) {
    const shown = await show(which);
    assert.deepEqual(
      ['hypervisor_hostname', 'uptime', 'host_time', 'users', 'load_average'].map((name) => at(shown, name)),
      ['host-1', '93 days, 18:25', '08:32:11', '12', '0.20, 0.12, 0.14'],
    );
  }
  assert.deepEqual([at(await show('host-2'), 'vcpus'), at(await show('host-2'), 'uptime')], [4, undefined]);
  await assert.rejects(show('host-3'), /No hypervisor with a name or ID of 'host-3' exists/);

  // A service that is forced down is shown as such.
  if (minor >= 11) {
    await setService('--down');
    const down = await showService();
    assert.deepEqual([at(down, 'State'), at(down, 'Forced Down')], ['down', true]);
    assert.equal(at(await show('host-1'), 'state'), 'down');
    await setService('--up');
    assert.equal(at(await showService(), 'State'), 'up');
  } else {
    await assert.rejects(setService('--down'), /2\.11 or later is required/);
  }

  // Deleting
  const remove = async (host: string) =>
    openstack('compute', 'service', 'delete', String(at(await showService(host), 'ID')));
  await assert.rejects(remove('host-1'), /hosting instances/);
  await remove('host-2');
  assert.deepEqual(
    (await listed(listServices())).map((each) => at(each, 'Host')),
    ['host-1'],
  );
}

async function listed(shown: Promise<unknown>): Promise<readonly unknown[]> {
  const list = await shown;
  assert.ok(Array.isArray(list));
  return list;
}

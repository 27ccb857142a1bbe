import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import type { Config } from '../../../src/config/config.ts';
import { withConf } from './machine.ts';

function configOf(name: string): Config {
  const text = readFileSync(new URL(`./files/${name}`, import.meta.url), 'utf8');
  return withConf(text, ({ load }) => {
    const { config, warnings } = load();
    assert.deepEqual(
      warnings.filter((warning) => /Did you mean/.test(warning)),
      [],
    );
    return config;
  });
}

suite('files of deployment tools', () => {
  test('kolla', () => {
    const {
      default: defaults,
      api,
      placementDatabase,
      keystoneAuthtoken: keystone,
      osloMiddleware,
      ...rest
    } = configOf('kolla.conf');
    assert.deepEqual(
      [defaults.debug, api.authStrategy, osloMiddleware.enableProxyHeadersParsing],
      [false, 'keystone', true],
    );
    assert.equal(placementDatabase.connection, 'postgresql://placement:aB3xY9@192.0.2.10:5432/placement');
    assert.deepEqual(
      [placementDatabase.maxPoolSize, placementDatabase.maxRetries, placementDatabase.connectionRecycleTime],
      [1, -1, 10],
    );
    assert.deepEqual(
      [keystone.authUrl, keystone.authType, keystone.username, keystone.password, keystone.projectName],
      ['http://192.0.2.10:5000', 'password', 'placement', 'qW7:eR=8#t;', 'service'],
    );
    assert.deepEqual(
      [keystone.userDomainId, keystone.projectDomainId, keystone.interface],
      ['default', 'default', 'internal'],
    );
    assert.deepEqual(
      [keystone.cafile, keystone.regionName, keystone.serviceTokenRolesRequired],
      [undefined, 'RegionOne', true],
    );
    assert.equal(rest.workarounds.optimizeForWideProviderTrees, true);
  });

  test('openstack-helm', () => {
    const {
      placementDatabase,
      keystoneAuthtoken: keystone,
      osloMiddleware,
      osloPolicy,
      placement,
    } = configOf('openstack-helm.conf');
    assert.equal(
      placementDatabase.connection,
      'postgresql://placement:password@postgresql.openstack.svc.cluster.local:5432/placement',
    );
    assert.equal(
      placementDatabase.slaveConnection,
      'postgresql://placement:password@replica.openstack.svc.cluster.local:5432/placement',
    );
    assert.deepEqual(
      [keystone.authUrl, keystone.interface, keystone.username],
      ['http://keystone-api.openstack.svc.cluster.local:5000/v3', 'internal', 'placement'],
    );
    assert.deepEqual([keystone.serviceTokenRoles, keystone.serviceType], [['service', 'admin'], 'placement']);
    assert.equal(osloMiddleware.enableProxyHeadersParsing, true);
    assert.match(osloPolicy.policyFile, /\/etc\/placement\/policy\.yaml$/);
    assert.deepEqual(
      [placement.randomizeAllocationCandidates, placement.allocationCandidatesGenerationStrategy],
      [true, 'breadth-first'],
    );
  });

  test('devstack', () => {
    const {
      default: defaults,
      api,
      placementDatabase,
      keystoneAuthtoken: keystone,
      osloPolicy,
      cors,
    } = configOf('devstack.conf');
    assert.deepEqual([defaults.debug, api.authStrategy], [true, 'keystone']);
    assert.equal(placementDatabase.connection, 'postgresql://root:secret@127.0.0.1/placement?client_encoding=utf8');
    assert.deepEqual(
      [keystone.wwwAuthenticateUri, keystone.authUrl, keystone.cafile, keystone.userDomainName],
      ['http://198.51.100.4/identity', 'http://198.51.100.4/identity', '/opt/stack/data/ca-bundle.pem', 'Default'],
    );
    assert.deepEqual([osloPolicy.enforceScope, osloPolicy.enforceNewDefaults], [false, false]);
    assert.deepEqual(cors.allowedOrigin, ['http://198.51.100.4', 'https://horizon.example.com:8443']);
  });
});

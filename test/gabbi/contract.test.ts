import assert from 'node:assert/strict';
import { test } from 'node:test';
import { holdToContract } from './contract.ts';
import type { Exchange } from './send.ts';

const exchange = (answer: object, headers: Readonly<Record<string, string>> = {}): Exchange => ({
  request: {
    method: 'GET',
    url: 'http://127.0.0.1:8778/resource_providers?name=host',
    headers: { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 1.14' },
    body: '',
  },
  response: {
    status: 200,
    headers: {
      status: '200',
      reason: 'OK',
      'content-type': 'application/json',
      'openstack-api-version': 'placement 1.14',
      'openstack-api-minimum-version': 'placement 1.0',
      'openstack-api-maximum-version': 'placement 1.39',
      vary: 'openstack-api-version',
      'x-openstack-request-id': 'req-6dd2bf3c-c4d1-4b7b-9a3f-1f7e6a0b2c11',
      ...headers,
    },
    text: JSON.stringify(answer),
    json: undefined,
  },
});

test('an exchange that matches openapi.yaml is accepted', () => {
  holdToContract(exchange({ resource_providers: [] }));
});

test('every difference from openapi.yaml is reported', () => {
  assert.throws(
    () => holdToContract(exchange({ providers: [] }, { 'cache-control': 'no-cache' })),
    /cache-control does not belong there[\s\S]*must have required property 'resource_providers'/,
  );
});

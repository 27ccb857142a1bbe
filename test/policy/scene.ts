import { randomUUID } from 'node:crypto';
import type { PlacementService } from '../../src/start/service.ts';
import { type Answer, accepted, at, makeProvider, newClaim, newestVersion, type Send } from '../support/requests.ts';
import type { Operation, Scene } from './operations.ts';

/** An operation, for messages. */
export const nameOf = ({ method, path, query, version }: Operation): string =>
  `${method} ${path}${query === undefined ? '' : `?${query}`} ${version}`.trimEnd();

/** Requests of a caller. The version is a whole one, `compute 2.53`; empty for none. */
export const requestsOf =
  ({ app }: Pick<PlacementService, 'app'>, identity: Readonly<Record<string, string>>): Send =>
  async (method, path, body, version = `placement ${newestVersion}`) => {
    const headers = new Headers(identity);
    if (version !== '') headers.set('openstack-api-version', version);
    if (body !== undefined) headers.set('content-type', 'application/json');
    const response = await app.request(path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = text !== '' && response.headers.get('content-type') === 'application/json';
    const { status, headers: answered } = response;
    const json: unknown = isJson ? JSON.parse(text) : undefined;
    return { request: `${method} ${path}`, status, headers: answered, text, json };
  };

/** Makes what the requests name. */
export async function makeScene(send: Send): Promise<Scene> {
  const freeName = () => `CUSTOM_${randomUUID().replaceAll('-', '_').toUpperCase()}`;
  const names = { class: freeName(), trait: freeName(), freeName: freeName(), serviceHost: freeName() };
  const [host, spare, vm] = [randomUUID(), randomUUID(), randomUUID()];
  const agent = { host: names.serviceHost, binary: 'nova-compute', uptime: 'up 3 days' };
  const services = '/compute/v2.1/os-services';
  const [registered] = await Promise.all([
    send('POST', services, agent, 'compute 2.53'),
    makeProvider(send, host, { VCPU: { total: 8 } }),
    makeProvider(send, spare, { VCPU: { total: 8 } }, { name: names.serviceHost }),
    send('PUT', `/resource_classes/${names.class}`).then(accepted),
    send('PUT', `/traits/${names.trait}`).then(accepted),
  ]);
  const claim = { ...newClaim({ [host]: { VCPU: 1 } }), project_id: 'p1', user_id: 'ada' };
  accepted(await send('PUT', `/allocations/${vm}`, claim));
  const hostGeneration = Number(at((await send('GET', `/resource_providers/${host}`)).json, 'generation'));
  const numbered = await send('GET', `${services}?host=${names.serviceHost}`, undefined, 'compute 2.1');
  return {
    ...names,
    host,
    hostGeneration,
    spare,
    vm,
    unused: randomUUID(),
    unknown: randomUUID(),
    service: String(at(accepted(registered).json, 'service', 'id')),
    serviceId: String(at(accepted(numbered).json, 'services', 0, 'id')),
    hypervisor: spare,
  };
}

const filled = (text: string, scene: Scene): string =>
  Object.entries(scene).reduce((before, [name, value]) => before.replaceAll(`{${name}}`, String(value)), text);

/** Sends an operation about a scene. */
export function sendOperation(
  send: Send,
  { method, path, query, version, body }: Operation,
  scene: Scene,
): Promise<Answer> {
  const url = filled(query === undefined ? path : `${path}?${query}`, scene);
  return send(method, url, body?.(scene), version);
}

/** All that a request could have changed. */
export async function readAll(send: Send): Promise<readonly string[]> {
  const paths = ['resource_providers', 'provider_summaries', 'consumers', 'resource_classes', 'traits'];
  const answers = await Promise.all([
    ...paths.map((path) => send('GET', `/${path}`)),
    send('GET', '/compute/v2.1/os-services', undefined, 'compute 2.53'),
  ]);
  return answers.map((answer) => accepted(answer).text);
}

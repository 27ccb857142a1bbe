/** deploy/kubernetes: each object is valid, what names each other agrees, and the configuration is one that the service takes. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite, test } from 'node:test';
import { Ajv } from 'ajv';
import { parse, parseAllDocuments } from 'yaml';
import { load } from '../../src/config/load.ts';
import { checkAuthentication } from '../../src/start/startup.ts';
import { at, listAt } from '../support/requests.ts';
import { containersOf, folder, manifests, only, readManifest } from './manifests.ts';

const schemas = JSON.parse(readFileSync(path.join(import.meta.dirname, 'schemas.json'), 'utf8'));

/** Of a Cluster of CloudNativePG those fields that the manifest uses, by its CRD of August 2026. */
const clusterSchema = {
  type: 'object',
  required: ['apiVersion', 'kind', 'metadata', 'spec'],
  properties: {
    apiVersion: { const: 'postgresql.cnpg.io/v1' },
    kind: { const: 'Cluster' },
    metadata: { $ref: 'schemas#/$defs/ObjectMeta' },
    spec: {
      type: 'object',
      required: ['instances'],
      additionalProperties: false,
      properties: {
        instances: { type: 'integer', minimum: 1 },
        bootstrap: {
          type: 'object',
          additionalProperties: false,
          properties: {
            initdb: {
              type: 'object',
              additionalProperties: false,
              properties: Object.fromEntries(
                ['database', 'owner', 'encoding', 'localeCollate', 'localeCType'].map((name) => [
                  name,
                  { type: 'string' },
                ]),
              ),
            },
          },
        },
        postgresql: {
          type: 'object',
          additionalProperties: false,
          properties: {
            parameters: { type: 'object', additionalProperties: { type: 'string' } },
            synchronous: {
              type: 'object',
              required: ['method', 'number'],
              additionalProperties: false,
              properties: { method: { enum: ['any', 'first'] }, number: { type: 'integer' } },
            },
          },
        },
        storage: { type: 'object', additionalProperties: false, properties: { size: { type: 'string' } } },
      },
    },
  },
};

const ajv = new Ajv({ strict: false, allErrors: true }).addSchema(schemas, 'schemas');
const problemsOf = (json: unknown): readonly string[] => {
  const kind = String(at(json, 'kind'));
  const validate = ajv.compile(kind === 'Cluster' ? clusterSchema : { $ref: `schemas#/$defs/${kind}` });
  return validate(json) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
};

/** All values that an object has under a name, at any depth. */
const allAt = (json: unknown, name: string): readonly unknown[] =>
  typeof json !== 'object' || json === null
    ? []
    : Object.entries(json).flatMap(([key, value]) => [...(key === name ? [value] : []), ...allAt(value, name)]);

const namesIn = (list: readonly unknown[]): readonly unknown[] => list.map((each) => at(each, 'name'));
const pod = (kind: 'Deployment' | 'Job') => at(only(kind), 'spec', 'template', 'spec');
const kustomization: unknown = parse(readManifest('kustomization.yaml'));

suite('the manifests for Kubernetes', () => {
  test('are valid, and a wrong field would not be', () => {
    assert.deepEqual(manifests.map(({ kind, name }) => `${kind} ${name}`).toSorted(), [
      'Cluster placement-db',
      'Deployment placement-api',
      'Job placement-migrate',
      'PodDisruptionBudget placement-api',
      'Service placement-api',
      'ServiceMonitor placement-api',
    ]);
    for (const { json, file } of manifests) assert.deepEqual(problemsOf(json), [], file);
    const wrong = structuredClone(containersOf('Deployment')[0]);
    assert.ok(typeof wrong === 'object' && wrong !== null);
    Object.assign(wrong, { readynessProbe: {}, ports: [{ containerPort: '8778' }] });
    const deployment = { ...parse(JSON.stringify(only('Deployment'))) };
    deployment.spec.template.spec.containers = [wrong];
    assert.deepEqual(problemsOf(deployment), [
      '/spec/template/spec/containers/0 must NOT have additional properties',
      '/spec/template/spec/containers/0/ports/0/containerPort must be number',
    ]);
  });

  test('name each other rightly', () => {
    const files = readdirSync(folder).filter((file) => file.endsWith('.yaml') && file !== 'kustomization.yaml');
    assert.deepEqual(listAt(kustomization, 'resources').toSorted(), files.toSorted());
    const labels = at(only('Deployment'), 'spec', 'template', 'metadata', 'labels');
    assert.deepEqual(at(only('Deployment'), 'spec', 'selector', 'matchLabels'), labels);
    assert.deepEqual(at(only('PodDisruptionBudget'), 'spec', 'selector', 'matchLabels'), labels);
    assert.deepEqual(at(only('Service'), 'spec', 'selector'), labels);
    assert.deepEqual(
      at(only('ServiceMonitor'), 'spec', 'selector', 'matchLabels'),
      at(only('Service'), 'metadata', 'labels'),
    );
    assert.deepEqual(allAt(pod('Deployment'), 'matchLabels'), [labels]);
    assert.notDeepEqual(
      at(only('Job'), 'spec', 'template', 'metadata', 'labels'),
      labels,
      'its pods are not of the Service',
    );

    const [container] = containersOf('Deployment');
    const ports = namesIn(listAt(container, 'ports'));
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      assert.ok(ports.includes(at(container, probe, 'httpGet', 'port')), probe);
    }
    for (const port of listAt(at(only('Service'), 'spec'), 'ports')) assert.ok(ports.includes(at(port, 'targetPort')));
    const served = namesIn(listAt(at(only('Service'), 'spec'), 'ports'));
    for (const each of listAt(at(only('ServiceMonitor'), 'spec'), 'endpoints'))
      assert.ok(served.includes(at(each, 'port')));

    const generated = namesIn(listAt(kustomization, 'secretGenerator'));
    for (const kind of ['Deployment', 'Job'] as const) {
      const volumes = listAt(pod(kind), 'volumes');
      for (const mount of containersOf(kind).flatMap((each) => listAt(each, 'volumeMounts'))) {
        assert.ok(namesIn(volumes).includes(at(mount, 'name')));
        assert.equal(at(mount, 'mountPath'), '/etc/placement', 'where the service looks for placement.conf');
      }
      for (const volume of volumes) assert.ok(generated.includes(at(volume, 'secret', 'secretName')));
      // CloudNativePG names the Secret of the owner's login by its Cluster.
      const secrets = allAt(containersOf(kind), 'secretKeyRef');
      assert.ok(secrets.length > 0);
      for (const secret of secrets) {
        assert.deepEqual(secret, { name: `${at(only('Cluster'), 'metadata', 'name')}-app`, key: 'uri' });
      }
      const images = namesIn(listAt(kustomization, 'images'));
      for (const each of containersOf(kind)) assert.ok(images.includes(at(each, 'image')));
    }
    assert.equal(
      at(listAt(kustomization, 'images')[0], 'newTag'),
      JSON.parse(readFileSync(path.join(folder, '../../package.json'), 'utf8')).version,
    );
  });

  test('give no rights, and enough time to begin and to end', () => {
    for (const kind of ['Deployment', 'Job'] as const) {
      const { securityContext, automountServiceAccountToken } = parse(JSON.stringify(pod(kind)));
      assert.equal(automountServiceAccountToken, false);
      assert.deepEqual(
        [securityContext.runAsNonRoot, securityContext.seccompProfile],
        [true, { type: 'RuntimeDefault' }],
      );
      for (const each of containersOf(kind)) {
        assert.deepEqual(at(each, 'securityContext'), {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
      }
    }
    const [container] = containersOf('Deployment');
    const [, slept] = listAt(at(container, 'lifecycle', 'preStop', 'exec'), 'command');
    const grace = Number(at(pod('Deployment'), 'terminationGracePeriodSeconds'));
    assert.ok(grace > Number(slept) + 29, 'the process ends by itself within 29 s of SIGTERM');
    const startup = at(container, 'startupProbe');
    const patience = Number(at(startup, 'periodSeconds')) * Number(at(startup, 'failureThreshold'));
    assert.ok(patience > 10 * 10 + 30, 'a start waits for PostgreSQL, max_retries x retry_interval');
  });

  test('have a configuration that the service takes, with the port of the container', () => {
    const url = 'postgresql://placement:pass%24word@placement-db-rw.placement:5432/placement';
    const configFile = path.join(folder, 'placement.conf');
    const files = listAt(listAt(kustomization, 'secretGenerator')[0], 'files');
    assert.deepEqual(files, [path.basename(configFile)]);
    const { config, warnings } = load({ configFiles: [configFile], env: { DATABASE_URL: url }, home: '/', cwd: '/' });
    assert.deepEqual(warnings, []);
    checkAuthentication(config);
    assert.deepEqual([config.api.host, config.placementDatabase.connection], ['0.0.0.0', url]);
    assert.equal(config.api.port, at(listAt(containersOf('Deployment')[0], 'ports')[0], 'containerPort'));
    // No variable has a name that the service does not know.
    for (const each of [...containersOf('Deployment'), ...containersOf('Job')]) {
      assert.deepEqual(namesIn(listAt(each, 'env')), ['DATABASE_URL']);
    }
  });

  test('are put together by kubectl kustomize', {
    skip: spawnSync('kubectl', ['kustomize', '--help']).status !== 0,
  }, () => {
    const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    const rendered: readonly unknown[] = parseAllDocuments(stdout).map((document) => document.toJS());
    assert.equal(rendered.length, manifests.length + 1);
    for (const each of rendered) assert.deepEqual(problemsOf(each), []);
    const secret = rendered.find((each) => at(each, 'kind') === 'Secret');
    const name = at(secret, 'metadata', 'name');
    assert.match(String(name), /^placement-config-\w+$/);
    const text = Buffer.from(String(at(secret, 'data', 'placement.conf')), 'base64').toString();
    assert.equal(text, readManifest('placement.conf'));
    const used = rendered.flatMap((each) => allAt(each, 'secretName'));
    assert.deepEqual([...new Set(used)], [name]);
  });
});

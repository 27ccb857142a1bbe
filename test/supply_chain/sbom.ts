import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { inFolder } from '../support/in_folder.ts';
import { bundled, lockFile, productionPackages, readProjectJson } from './production.ts';

/**
 * The list of what an installation of the service contains (SBOM), in the form of CycloneDX, by `npm sbom`. It needs no
 * network.
 *
 * npm gets a lock file without the packages for development. With `--omit=dev` it would leave out a package that tools
 * for development need, such as pg, although the service needs it as well.
 */
export async function writeSbom(): Promise<string> {
  return inFolder(async (folder) => {
    // npm names the whole after its folder.
    const alone = path.join(folder, 'placement');
    await mkdir(alone);
    const { name, version, description, license, type, dependencies } = readProjectJson('package.json');
    const shipped = Object.fromEntries(
      bundled.map((each) => [each, lockFile.packages[`node_modules/${each}`]?.version]),
    );
    const manifest = {
      name,
      version,
      description,
      license,
      type,
      dependencies: { ...Object(dependencies), ...shipped },
    };
    const packages = { '': manifest, ...Object.fromEntries(productionPackages()) };
    await writeFile(path.join(alone, 'package.json'), JSON.stringify(manifest));
    await writeFile(path.join(alone, 'package-lock.json'), JSON.stringify({ ...lockFile, packages }));
    const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only', '--offline', '--loglevel=error'];
    return (await promisify(execFile)('npm', args, { cwd: alone })).stdout;
  });
}

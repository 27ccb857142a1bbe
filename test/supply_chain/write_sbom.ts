/** Prints the list of what an installation of the service contains (SBOM), in the form of CycloneDX. */
import { writeSbom } from './sbom.ts';

process.stdout.write(await writeSbom());

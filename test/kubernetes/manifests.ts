import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';
import { at, listAt } from '../support/requests.ts';

/** The folder of the manifests. */
export const folder = path.join(import.meta.dirname, '../../deploy/kubernetes');

/** A file of the folder as text. */
export const readManifest = (name: string): string => readFileSync(path.join(folder, name), 'utf8');

/** An object for Kubernetes, and the file that has it. */
export type Manifest = { readonly file: string; readonly kind: string; readonly name: string; readonly json: unknown };

/** All objects of the folder, without the kustomization. */
export const manifests: readonly Manifest[] = readdirSync(folder)
  .filter((file) => file.endsWith('.yaml') && file !== 'kustomization.yaml')
  .flatMap((file) =>
    parseAllDocuments(readManifest(file)).map((document) => {
      const json: unknown = document.toJS();
      return { file, json, kind: String(at(json, 'kind')), name: String(at(json, 'metadata', 'name')) };
    }),
  );

/** The only object of a kind. */
export function only(kind: string): unknown {
  const [found, ...others] = manifests.filter((manifest) => manifest.kind === kind);
  if (found === undefined || others.length > 0) throw new Error(`There must be one ${kind}.`);
  return found.json;
}

/** The containers of a Deployment or a Job, in the order in which they run. */
export function containersOf(kind: 'Deployment' | 'Job'): readonly unknown[] {
  const pod = at(only(kind), 'spec', 'template', 'spec');
  return [...listAt(pod, 'initContainers'), ...listAt(pod, 'containers')];
}

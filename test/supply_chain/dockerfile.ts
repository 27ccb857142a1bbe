/** What the Dockerfile says, and which files of the project reach it. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { project } from './production.ts';

/** A line of the Dockerfile, such as `COPY db db`. */
export type Instruction = { readonly name: string; readonly text: string };

/** A part of the Dockerfile that begins with FROM. */
export type Stage = { readonly name: string; readonly instructions: readonly Instruction[] };

/** The stages of deploy/Dockerfile; the last one, which is the image, has no name. */
export function readStages(): readonly Stage[] {
  const text = readFileSync(path.join(project, 'deploy', 'Dockerfile'), 'utf8');
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll('\\\n', '')
    .split('\n')
    .filter((line) => line !== '');
  const stages: { name: string; instructions: Instruction[] }[] = [];
  for (const line of lines) {
    const [, name = '', rest = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    if (name === '') throw new Error(`The Dockerfile has a line without an instruction: ${line}`);
    if (name === 'FROM') stages.push({ name: / AS (\S+)$/.exec(rest)?.[1] ?? '', instructions: [] });
    else stages.at(-1)?.instructions.push({ name, text: rest });
  }
  return stages;
}

/** The instructions of a stage that have a name. */
export const textsOf = (stage: Stage | undefined, name: string): readonly string[] =>
  (stage?.instructions ?? []).filter((each) => each.name === name).map(({ text }) => text);

/** The files that a stage copies from the project, and where to: `COPY a b folder/`. */
export const copiedBy = (stage: Stage | undefined): readonly { readonly source: string; readonly target: string }[] =>
  textsOf(stage, 'COPY')
    .filter((text) => !text.startsWith('--from='))
    .flatMap((text) => {
      const words = text.split(/\s+/);
      const target = words.at(-1) ?? '';
      return words.slice(0, -1).map((source) => ({
        source,
        target: target.endsWith('/') ? path.join(target, path.basename(source)) : target,
      }));
    });

/**
 * Whether a file or folder of the project is sent to Docker, by .dockerignore: it leaves out everything (`*`), and then names what is not
 * left out (`!db`).
 */
export function isSent(file: string): boolean {
  const [first, ...others] = readFileSync(path.join(project, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (first !== '*' || others.some((line) => !/^![\w./-]+$/.test(line)))
    throw new Error('.dockerignore has other lines than `*` and `!PATH`, which this does not understand.');
  return others.some((line) => file === line.slice(1) || file.startsWith(`${line.slice(1)}/`));
}

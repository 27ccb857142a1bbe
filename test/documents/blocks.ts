import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { project } from '../client/documentation.ts';
import { hasPrograms } from '../support/debian_packages.ts';

/** A block of a document that is run, and what it prints; undefined where the document does not say it. */
type Block = { readonly language: 'sh' | 'python'; readonly code: string; readonly output: string | undefined };

async function readBlocks(document: string): Promise<readonly Block[]> {
  const markdown = await readFile(path.join(project, document), 'utf8');
  const found = markdown.matchAll(/^```(sh|python)\n([\s\S]*?)^```$(?:\n\n```text\n([\s\S]*?)^```$)?/gm);
  return Array.from(found, ([, language, code = '', output]) => ({
    language: language === 'sh' ? 'sh' : 'python',
    code,
    output,
  }));
}

/**
 * Runs the blocks of a document one after the other, and compares what they print. `...` in a document matches any text. Python keeps
 * what earlier blocks have defined; the shell only what the first block defines.
 *
 * @param url of the service, in the place of the one that the document names
 * @param folder in which the blocks run
 * @param edit changes a block before it runs
 * @returns how many blocks there are
 */
export async function runBlocks(
  document: string,
  url: string,
  folder: string = project,
  edit: (code: string) => string = (code) => code,
): Promise<number> {
  const blocks = (await readBlocks(document)).map((block) => ({ ...block, code: edit(block.code) }));
  const here = (code: string) =>
    code
      .replaceAll('http://127.0.0.1:8778', url)
      .replaceAll('npm run --silent placement --', programOf('placement'))
      .replaceAll('npm run --silent manage --', programOf('placement-manage'));
  const setup = here(blocks.find(({ language }) => language === 'sh')?.code ?? '');
  const python = startPython(folder);
  try {
    for (const { language, code, output } of blocks) {
      const printed = await (language === 'python' ? python.run(here(code)) : runShell(setup, here(code), url, folder));
      if (output !== undefined)
        assert.match(printed.trimEnd(), patternOf(output.trimEnd()), `${code}\nprints\n${printed}`);
    }
  } finally {
    python.end();
  }
  return blocks.length;
}

const programOf = (name: string): string => `'${process.execPath}' '${path.join(project, 'src', 'bin', `${name}.ts`)}'`;

async function runShell(setup: string, code: string, url: string, cwd: string): Promise<string> {
  const script = ['set -euo pipefail', setup, code === setup ? '' : code].join('\n');
  const env = { ...process.env, OS_ENDPOINT: url, OS_TOKEN: 'admin' };
  const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd, env, timeout: 60_000 });
  return stdout;
}

/** Runs each line of its input, which is a program as JSON text, and prints a null character behind what the program has printed. */
const driver = `
import sys, json
names = {'__name__': '__main__'}
for line in sys.stdin:
    exec(compile(json.loads(line), 'block', 'exec'), names)
    print('\\0', end='', flush=True)
`;

function startPython(cwd: string) {
  const child = spawn('python3', ['-u', '-c', driver], { cwd, stdio: ['pipe', 'pipe', 'inherit'] });
  let printed = '';
  let notify = (): void => {};
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    printed += chunk;
    notify();
  });
  let ended = false;
  child.once('exit', () => {
    ended = true;
    notify();
  });
  return {
    run: async (code: string): Promise<string> => {
      printed = '';
      child.stdin.write(`${JSON.stringify(code)}\n`);
      while (!printed.endsWith('\0')) {
        if (ended) throw new Error(`Python ended at:\n${code}`);
        const { promise, resolve } = Promise.withResolvers<void>();
        notify = resolve;
        await promise;
      }
      return printed.slice(0, -1);
    },
    end: () => child.kill(),
  };
}

/** `...` matches any text; a line that begins with a blank continues the line before it. */
function patternOf(output: string): RegExp {
  const parts = output.replaceAll(/\n (?! )/g, '').split('...');
  return new RegExp(`^${parts.map((part) => RegExp.escape(part)).join('[^]*?')}$`);
}

/** Why tests that need Python are skipped; false where it can send requests, also after its package was installed (as root on Debian). */
export const withoutPython: string | false = hasPrograms(
  () => spawnSync('python3', ['-c', 'import requests']).status === 0,
  ['python3', 'python3-requests'],
)
  ? false
  : 'Python, or its package requests, is missing, and cannot be installed here';

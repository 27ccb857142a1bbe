import { readFile } from 'node:fs/promises';

/** The file that V8 writes with `--cpu-prof`. Times are microseconds. */
type Profile = {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
  }[];
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
};

/** A period by the clock of `process.hrtime`, which all processes of a machine share, in microseconds. */
export type Stretch = { readonly fromUs: number; readonly toUs: number };

export const nowUs = (): number => Number(process.hrtime.bigint() / 1000n);

/**
 * The share of each part of the program in the CPU time of a profile: folders of src/ and db/, packages, and Node.js.
 * The largest share comes first. The sum of all shares is 1.
 */
export async function partsOf(
  file: string,
  { fromUs, toUs }: Stretch,
): Promise<readonly (readonly [string, number])[]> {
  const profile: Profile = JSON.parse(await readFile(file, 'utf8'));
  const partOfNode = new Map(profile.nodes.map(({ id, callFrame }) => [id, partOf(callFrame)]));
  const timeOf = new Map<string, number>();
  let now = profile.startTime;
  for (const [index, node] of profile.samples.entries()) {
    const took = profile.timeDeltas[index] ?? 0;
    now += took;
    const part = partOfNode.get(node);
    if (part === undefined || now < fromUs || now > toUs) continue;
    timeOf.set(part, (timeOf.get(part) ?? 0) + took);
  }
  const total = [...timeOf.values()].reduce((sum, time) => sum + time, 0);
  return [...timeOf].map(([part, time]) => [part, time / total] as const).toSorted((left, right) => right[1] - left[1]);
}

function partOf({ functionName, url }: Profile['nodes'][number]['callFrame']): string | undefined {
  if (functionName === '(idle)') return undefined;
  if (functionName === '(garbage collector)') return 'garbage collection';
  const packageName = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
  if (packageName !== undefined) return packageName;
  const folder = /\/((?:src\/[^/]+|db))\/[^?]*\.ts$/.exec(url)?.[1];
  return folder ?? (url === '' ? 'native code and the kernel' : 'Node.js');
}

import type { Command } from 'commander';
import { instead, isTooOld } from '../client/errors.ts';
import type { CandidateQuery, Candidates, Placement } from '../client/index.ts';
import { resourcesText, wholeNumber } from './amounts.ts';
import { queryHelp, takeQuery, takeTreeOptions } from './candidate_query.ts';
import { explainedQuery, explanationText } from './explanation_text.ts';
import { namesOf, uuidIfNamed } from './find_provider.ts';
import { type Shell, shellOf } from './shell.ts';

/** A list with more candidates would be too long to read. */
const defaultLimit = 20;

/** Adds the commands of `placement candidate`. */
export function addCandidateCommands(program: Command): void {
  const candidate = program.command('candidate').description('where something fits');
  const list = candidate
    .command('list')
    .description('list where resources fit; each number is one way to take all of them');
  const readListed = takeQuery(list);
  takeTreeOptions(list)
    .option('--limit <number>', 'how many; 0 for all', wholeNumber(0), defaultLimit)
    .addHelpText(
      'after',
      queryHelp('placement candidate list VCPU=2 MEMORY_MB=2048 --required HW_CPU_X86_VMX -g _NIC -r SRIOV_NET_VF=1'),
    )
    .action(async (_amounts: unknown, { limit }: { readonly limit: number }, command: Command) => {
      const shell = shellOf(command);
      await showCandidates(shell, await readListed(command, shell), limit);
    });

  const why = candidate
    .command('why')
    .description('explain why resources fit only in some trees or in none, and list the nearest trees; from 2.3');
  const readExplained = takeQuery(why);
  why
    .option('--host <provider>', 'ask about the tree of this provider only')
    .option('--nearest <number>', 'how many of the nearest trees to show', wholeNumber(0))
    .addHelpText('after', queryHelp('placement candidate why VCPU=64 --required HW_CPU_X86_VMX --host host-1'))
    .action(
      async (_amounts: unknown, options: { readonly host?: string; readonly nearest?: number }, command: Command) => {
        const shell = shellOf(command);
        const query = await readExplained(command, shell);
        const tree = await uuidIfNamed(shell.placement, options.host);
        const explained = await shell.placement.candidateQuestions.explain({
          ...query,
          nearest: options.nearest,
          tree,
        });
        const parts = await explanationText(shell.placement, explained, shell.format);
        shell.print(explained, () => parts);
      },
    );

  const count = candidate
    .command('count')
    .description('count how many consumers fit at the same time beside the present usage; from 2.3');
  const readCounted = takeQuery(count);
  count
    .option('--max <number>', 'stop counting at this number', wholeNumber(0))
    .option('--top <number>', 'how many of the trees with the largest counts to show', wholeNumber(0))
    .addHelpText('after', queryHelp('placement candidate count VCPU=2 MEMORY_MB=4096'))
    .action(async (_amounts: unknown, options: { readonly max?: number; readonly top?: number }, command: Command) => {
      const shell = shellOf(command);
      const query = await readCounted(command, shell);
      const counted = await shell.placement.candidateQuestions.count({ ...query, max: options.max, top: options.top });
      shell.print(counted, () => {
        const { count, exact, trees } = counted;
        const rows = trees.map((tree) => [tree.name, tree.uuid, tree.count]);
        const total = exact ? `${count} fit.` : `At least ${count} fit.`;
        return [total, { head: ['host', 'uuid', 'alone'], rows, orElse: '' }];
      });
    });
}

async function showCandidates(
  { placement, print, format }: Shell,
  query: CandidateQuery,
  limit: number,
): Promise<void> {
  const found = await candidatesUpTo(placement, query, limit);
  const { allocation_requests: requests, provider_summaries: summaries } = found;
  const nameOf = await namesOf(
    placement,
    requests.flatMap(({ allocations }) => Object.keys(allocations)),
  );
  const explained = requests.length === 0 ? await explainedQuery(placement, query) : undefined;
  // Where it fits, other consumers are in the way: the query names them.
  const why = explained === undefined || explained.fitting ? [] : await explanationText(placement, explained, format);
  print(found, () => {
    const rows = requests.flatMap(({ allocations }, number) =>
      Object.entries(allocations).map(([uuid, { resources }], index) => [
        format !== 'table' || index === 0 ? number + 1 : undefined,
        nameOf(uuid),
        uuid,
        resourcesText(resources),
        Object.keys(resources)
          .map((name) => {
            const { used = 0, capacity = 0 } = summaries[uuid]?.resources[name] ?? {};
            return `${name} ${used}/${capacity}`;
          })
          .join(', '),
      ]),
    );
    return [
      { head: ['#', 'provider', 'uuid', 'takes', 'used / capacity'], rows, orElse: 'It fits nowhere.' },
      ...(requests.length > 0 && requests.length === limit
        ? ['There may be more. Give a larger --limit to see more.']
        : []),
      ...why,
    ];
  });
}

/** A server below 1.16 knows no limit, so the command cuts the list itself. @param limit 0 for all candidates */
async function candidatesUpTo(placement: Placement, query: CandidateQuery, limit: number): Promise<Candidates> {
  if (limit === 0) return placement.candidates(query);
  const limited = await placement.candidates({ ...query, limit }).catch(instead(undefined, isTooOld));
  if (limited !== undefined) return limited;
  const found = await placement.candidates(query);
  return { ...found, allocation_requests: found.allocation_requests.slice(0, limit) };
}

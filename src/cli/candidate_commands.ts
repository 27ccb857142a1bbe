import { type Command, InvalidArgumentError, Option } from 'commander';
import type { CandidateQuery, ProviderFilter, Resources } from '../client/index.ts';
import { collect, collectAmounts, resourcesText } from './amounts.ts';
import { findProvider, namesOf } from './find_provider.ts';
import { shellOf } from './shell.ts';
import { table } from './table.ts';

/** A group of the request as the options built it up; options belong to the `--group` before them. */
type Group = {
  readonly suffix: string;
  readonly resources: Resources;
  readonly required: readonly string[];
  readonly member_of: readonly string[];
  readonly in_tree?: string;
};

type ListOptions = {
  readonly limit: number;
  readonly groupPolicy?: 'none' | 'isolate';
  readonly rootRequired?: readonly string[];
  readonly sameSubtree?: readonly (readonly string[])[];
};

/** More candidates than anybody reads. */
const defaultLimit = 20;

export function addCandidateCommands(program: Command): void {
  const candidate = program.command('candidate').description('where something fits');
  let groups: readonly Group[] = [newGroup('')];
  const change = (next: (group: Group) => Group, changed = groups.length - 1) => {
    groups = groups.map((group, place) => (place === changed ? next(group) : group));
  };
  const ask = (text: string) => (group: Group) => ({ ...group, resources: collectAmounts(text, group.resources) });
  candidate
    .command('list')
    .description('list where resources fit; each number is one way to take all of them')
    .argument('[CLASS=AMOUNT...]', 'what is needed of any provider of a tree', (text: string) => change(ask(text), 0))
    .option('-r, --resource <CLASS=AMOUNT>', 'the same; behind --group, what that group needs', (text: string) =>
      change(ask(text)),
    )
    .option('--required <trait>', 'with a trait, without it: !TRAIT, or with one of several: in:A,B', (trait: string) =>
      change((group) => ({ ...group, required: [...group.required, trait] })),
    )
    .option('--member-of <aggregate>', 'in an aggregate, or outside of it: !UUID', (uuid: string) =>
      change((group) => ({ ...group, member_of: [...group.member_of, uuid] })),
    )
    .option('--in-tree <provider>', 'in the tree of this provider', (provider: string) =>
      change((group) => {
        if (group.in_tree === undefined) return { ...group, in_tree: provider };
        throw new InvalidArgumentError('It is given twice. Give it once for each group.');
      }),
    )
    .option(
      '-g, --group <suffix>',
      'begin a group that one provider must have alone, such as 1 or _GPU',
      (suffix: string) => {
        if (!/^[a-zA-Z0-9_-]{1,64}$/.test(suffix)) throw new InvalidArgumentError('It has letters, digits, - and _.');
        if (groups.some((group) => group.suffix === suffix)) {
          throw new InvalidArgumentError(
            `Group ${suffix} is given twice. Give it once, with all its options behind it.`,
          );
        }
        groups = [...groups, newGroup(suffix)];
      },
    )
    .addOption(
      new Option(
        '--group-policy <policy>',
        'whether groups may share a provider; with groups none unless given',
      ).choices(['none', 'isolate']),
    )
    .option('--root-required <trait>', 'a trait of the root, or !TRAIT', collect)
    .option('--same-subtree <suffixes>', 'groups below one of them, separated by commas', collectSubtrees)
    .option('--limit <number>', 'how many; 0 for all', readLimit, defaultLimit)
    .addHelpText(
      'after',
      '\nOptions behind --group belong to that group, those before the first to any provider of a tree.\n' +
        'Example: placement candidate list VCPU=2 MEMORY_MB=2048 --required HW_CPU_X86_VMX -g _NIC -r SRIOV_NET_VF=1',
    )
    .action(async (_amounts: unknown, options: ListOptions, command: Command) => {
      const shell = shellOf(command);
      if (groups.every(({ resources }) => Object.keys(resources).length === 0)) {
        command.error('error: Nothing is asked for. Say what is needed, such as VCPU=2 MEMORY_MB=2048.');
      }
      const [plain = newGroup(''), ...granular] = await Promise.all(
        groups.map(async (group) =>
          group.in_tree === undefined
            ? group
            : { ...group, in_tree: (await findProvider(shell.placement, group.in_tree)).uuid },
        ),
      );
      await list(shell, plain, granular, options);
    });
}

const newGroup = (suffix: string): Group => ({ suffix, resources: {}, required: [], member_of: [] });

async function list(
  { placement, print }: ReturnType<typeof shellOf>,
  plain: Group,
  granular: readonly Group[],
  { limit, groupPolicy, rootRequired, sameSubtree }: ListOptions,
): Promise<void> {
  const query: CandidateQuery = {
    ...filterOf(plain),
    groups: Object.fromEntries(granular.map((group) => [group.suffix, filterOf(group)])),
    group_policy: granular.length > 0 ? (groupPolicy ?? 'none') : groupPolicy,
    root_required: rootRequired,
    same_subtree: sameSubtree,
    ...(limit === 0 ? {} : { limit }),
  };
  const found = await placement.candidates(query);
  const { allocation_requests: requests, provider_summaries: summaries } = found;
  const nameOf = await namesOf(
    placement,
    requests.flatMap(({ allocations }) => Object.keys(allocations)),
  );
  print(found, () => {
    if (requests.length === 0) return 'It fits nowhere.';
    const rows = requests.flatMap(({ allocations }, number) =>
      Object.entries(allocations).map(([uuid, { resources }], place) => [
        place === 0 ? number + 1 : undefined,
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
    const more = requests.length === limit ? `\nThere may be more than these ${limit}: --limit shows them.` : '';
    return table(['#', 'provider', 'uuid', 'takes', 'used / capacity'], rows) + more;
  });
}

const filterOf = ({ suffix: _suffix, ...filter }: Group): ProviderFilter => filter;

const collectSubtrees = (text: string, before: readonly (readonly string[])[] = []) => [...before, text.split(',')];

function readLimit(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It is a whole number; 0 for all.');
}

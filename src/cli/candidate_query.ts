import { type Command, InvalidArgumentError, Option } from 'commander';
import { instead, isForbidden } from '../client/errors.ts';
import { forEach } from '../client/for_each.ts';
import type { CandidateQuery, OrderKey, Placement, ProviderFilter, Resources } from '../client/index.ts';
import { collect, collectAmounts } from './amounts.ts';
import { foundConsumer, readConsumer } from './consumer_argument.ts';
import { CommandFailure } from './exit_codes.ts';
import { uuidIfNamed } from './find_provider.ts';
import { hasSomething, readHeld } from './held.ts';
import type { Shell } from './shell.ts';

/** A group of the request, collected from the options. An option belongs to the `--group` before it. */
type Group = {
  readonly suffix: string;
  readonly resources: Resources;
  readonly required: readonly string[];
  readonly member_of: readonly string[];
  readonly in_tree?: string | undefined;
};

/** The options of a query that do not belong to a group. */
type WideOptions = {
  readonly groupPolicy?: 'none' | 'isolate';
  readonly rootRequired?: readonly string[];
  readonly sameSubtree?: readonly (readonly string[])[];
  readonly order?: readonly OrderKey[];
  readonly with?: readonly string[];
  readonly apartFrom?: readonly string[];
  /** Of `allocation place`: the project in which consumers have names. */
  readonly project?: string;
  /** Of `allocation place`: how long it may wait. */
  readonly wait?: number;
};

/** Reads the query of a command after its options were parsed. */
export type QueryReader = (command: Command, shell: Pick<Shell, 'placement'>) => Promise<CandidateQuery>;

/**
 * Adds the options of a candidate query to a command: amounts, traits, groups. @returns a function that reads the query
 */
export function takeQuery(command: Command): QueryReader {
  let groups: readonly Group[] = [newGroup('')];
  // What the options return is a list, by which the program sees that they may be repeated.
  const change = (next: (group: Group) => Group, changed = groups.length - 1) => {
    groups = groups.map((group, index) => (index === changed ? next(group) : group));
    return groups;
  };
  const ask = (text: string) => (group: Group) => ({ ...group, resources: collectAmounts(text, group.resources) });
  command
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
        return groups;
      },
    )
    .addOption(
      new Option(
        '--group-policy <policy>',
        'whether groups may share a provider; the default with groups is none',
      ).choices(['none', 'isolate']),
    )
    .option('--root-required <trait>', 'a trait of the root, or !TRAIT', collect)
    .option('--same-subtree <suffixes>', 'groups below one of them, separated by commas', collectSubtrees);
  return async (asked, { placement }) => {
    if (groups.every(({ resources }) => Object.keys(resources).length === 0)) {
      asked.error('error: Nothing is asked for. Say what is needed, such as VCPU=2 MEMORY_MB=2048.');
    }
    const options = asked.opts<WideOptions>();
    checkGroups(groups.slice(1), options);
    checkRootRequired(options);
    const [plain = newGroup(''), ...granular] = await Promise.all(
      groups.map(async (group) => ({ ...group, in_tree: await uuidIfNamed(placement, group.in_tree) })),
    );
    const { groupPolicy, rootRequired, sameSubtree, order, project, wait, ...wide } = options;
    const uuidsOf = async (texts: readonly string[] | undefined) => {
      const named = texts?.map((text) => readConsumer(text, project, asked));
      return named && forEach(named, async (one) => (await foundConsumer(placement, one)).uuid);
    };
    const beside = await uuidsOf(wide.with);
    // A claim that waits may wait for one of them.
    if (beside !== undefined && wait === undefined) await checkWith(placement, wide.with ?? [], beside);
    return {
      ...filterOf(plain),
      groups: Object.fromEntries(granular.map((group) => [group.suffix, filterOf(group)])),
      group_policy: granular.length > 0 ? (groupPolicy ?? 'none') : groupPolicy,
      root_required: rootRequired,
      same_subtree: sameSubtree,
      order,
      apart_from: await uuidsOf(wide.apartFrom),
      with: beside,
    };
  };
}

/** @throws CommandFailure for a group without resources. Only a group that --same-subtree names may have traits alone */
function checkGroups(groups: readonly Group[], { sameSubtree = [] }: WideOptions): void {
  for (const { suffix, resources, required, member_of, in_tree } of groups) {
    if (Object.keys(resources).length > 0) continue;
    const hasConditions = required.length > 0 || member_of.length > 0 || in_tree !== undefined;
    if (hasConditions && sameSubtree.some((suffixes) => suffixes.includes(suffix))) continue;
    throw new CommandFailure(
      'wrongInput',
      `--group ${suffix}: no resource is asked of this group. Name one behind it, such as --group ${suffix} -r VCPU=1` +
        `${hasConditions ? ', or name the group in --same-subtree' : ''}.`,
    );
  }
}

function checkRootRequired({ rootRequired = [] }: WideOptions): void {
  const wrong = rootRequired.find((trait) => /^!?in:/.test(trait));
  if (wrong === undefined) return;
  throw new CommandFailure(
    'wrongInput',
    `--root-required ${wrong}: for the root, "one of several" cannot be required. Write one trait, or !TRAIT; --required takes in:A,B.`,
  );
}

/** @throws CommandFailure if none of the consumers has anything: their names may be misspelled */
async function checkWith(placement: Placement, texts: readonly string[], uuids: readonly string[]): Promise<void> {
  const held = await forEach(uuids, (uuid) => readHeld(placement, uuid)).catch(instead(undefined, isForbidden));
  if (held === undefined || held.some(hasSomething)) return;
  const named = texts.map((text) => `--with ${text}`).join(', ');
  const which = texts.length === 1 ? 'this consumer has' : 'these consumers have';
  throw new CommandFailure(
    'wrongInput',
    `${named}: ${which} nothing, so that no host has ${texts.length === 1 ? 'it' : 'them'}.`,
  );
}

/** Adds the options that choose among hosts to a command with a query; from 2.4. */
export const takeTreeOptions = (command: Command): Command =>
  command
    .option(
      '--order <keys>',
      'which hosts come first: free:CLASS (least free), -free:CLASS (most free), prefer:TRAIT, random; several by commas',
      collectKeys,
    )
    .option('--with <consumer>', 'only on a host where one of these consumers is; may be repeated', collect)
    .option('--apart-from <consumer>', 'only on hosts where none of these consumers is; may be repeated', collect);

function collectKeys(text: string, before: readonly OrderKey[] = []): readonly OrderKey[] {
  const keys = text.split(',').map((key) => {
    if (isOrderKey(key)) return key;
    throw new InvalidArgumentError('Its keys are free:CLASS, -free:CLASS, prefer:TRAIT and random.');
  });
  return [...before, ...keys];
}

const isOrderKey = (key: string): key is OrderKey => /^(-?free:.+|prefer:.+|random)$/.test(key);

/** The text after the help of a command with a query. */
export const queryHelp = (example: string): string =>
  `\nOptions behind --group belong to that group, those before the first to any provider of a tree.\nExample: ${example}`;

const newGroup = (suffix: string): Group => ({ suffix, resources: {}, required: [], member_of: [] });

const filterOf = ({ suffix: _suffix, ...filter }: Group): ProviderFilter => filter;

const collectSubtrees = (text: string, before: readonly (readonly string[])[] = []) => [...before, text.split(',')];

import type { Command } from 'commander';
import { targets } from '../access/policy/defaults.ts';
import { printCheck, referredRules, type Values } from '../access/policy/evaluate.ts';
import { explainDecision, originOf } from '../access/policy/explain.ts';
import { loadRules, type PolicySettings } from '../access/policy/policy.ts';
import { findRule, type Rule, type Rules } from '../access/policy/rules.ts';
import { teamsPolicy } from '../access/policy/teams.ts';
import type { Owner } from '../placement/consumer.ts';
import { type Identity, noIdentity } from '../rest/identity.ts';
import { addCommandGroup } from '../start/run_command.ts';
import { print, printError } from '../text/print.ts';
import { nearName } from '../text/strings.ts';

/** The flags of `policy check`: they describe the token and the target of a request. */
type CheckFlags = {
  readonly roles?: string;
  readonly user: string;
  readonly project?: string;
  readonly domain?: string;
  readonly systemScope?: string;
  readonly targetProject?: string;
  readonly consumer?: string;
};

/**
 * Adds `policy list`, `policy teams` and `policy check` to a program.
 *
 * @param ownerOf reads the owner of a consumer, the only thing for which the database is needed
 */
export function addPolicyCommands(
  program: Command,
  settings: () => PolicySettings,
  ownerOf: (consumer: string) => Promise<Owner | undefined>,
): void {
  const policy = addCommandGroup(program, 'policy', 'the rules that decide which token may do what');
  policy
    .command('list')
    .description('print the rules in effect as a policy file, with the source of each')
    .argument('[text...]', 'only rules whose name has one of these texts, such as usages')
    .option('--changed', 'only the rules of policy files')
    .action((texts: readonly string[], { changed }: { readonly changed?: true }) => {
      const { byName } = loadRules(settings(), onStandardError);
      const chosen = [...byName.values()].filter(
        ({ name, file }) =>
          (texts.length === 0 || texts.some((text) => name.includes(text))) &&
          (changed === undefined || file !== undefined),
      );
      for (const rule of chosen) print(describeRule(rule));
      if (chosen.length > 0 || texts.length === 0) return;
      const of = changed === undefined ? '' : ' of a policy file';
      refuse(
        `There is no rule${of} whose name has ${texts.map((text) => JSON.stringify(text)).join(' or ')}.`,
        texts,
        byName,
      );
    });
  policy
    .command('teams')
    .description('print a policy file for teams that share a pool, each with rights for its own project')
    .action(() => print(teamsPolicy().trimEnd()));
  policy
    .command('check')
    .description(
      'explain whether a rule allows a request; exit code 0 if it does, 1 if not, 3 if there is no such rule',
    )
    .argument('<rule>', 'the rule, such as placement:usages')
    .option('--roles <names>', 'the roles of the token, separated by commas')
    .option('--user <id>', 'the user of the token', 'user')
    .option('--project <id>', 'the project of the token')
    .option('--domain <id>', 'the domain, for a token of scope domain')
    .option('--system-scope <scope>', 'all, for a token of scope system')
    .option(
      '--target-project <id>',
      'the project that the request is about, for rules that look at it; default: the project of the token',
    )
    .option('--consumer <uuid>', 'the consumer that the request is about: its owner is looked up in the database')
    .action(async (name: string, flags: CheckFlags, command: Command) => {
      const rules = loadRules(settings(), onStandardError);
      const rule = findRule(rules, name);
      if (rule === undefined) {
        refuse(`There is no rule ${name}.`, [name], rules.byName);
        return;
      }
      const identity = identityOf(flags);
      const about = targets.get(name);
      const looksAtProject = asksForProject(rule, rules);
      const owner = flags.consumer === undefined ? undefined : await ownerOf(flags.consumer);
      if (flags.consumer !== undefined && owner === undefined) {
        command.error(`error: there is no consumer ${flags.consumer}, so nothing of it is shown or changed.`);
      }
      const project = owner?.projectId ?? flags.targetProject ?? flags.project;
      if (about !== undefined && project === undefined && looksAtProject) {
        command.error(
          `error: ${name} compares the project of the token with that of ${about}: give --project for the token, or ` +
            '--target-project or --consumer for the request.',
        );
      }
      const target: Values =
        about === undefined
          ? { project_id: null }
          : { project_id: project ?? null, user_id: owner?.userId ?? identity.userId };
      const { allowed, lines } = explainDecision(rules, name, identity, target);
      for (const line of lines) print(line);
      if (looksAtProject) {
        print(
          about === undefined
            ? 'The request is about no project: a comparison with the target is never true.'
            : `The request is about ${about}: project ${project ?? 'none'}.`,
        );
      }
      process.exitCode = allowed ? 0 : 1;
    });
}

/** Not 1, which means that a rule denies. */
const noSuchRule = 3;

function refuse(problem: string, names: readonly string[], rules: ReadonlyMap<string, Rule>): void {
  const known = new Map(
    [...rules.keys()].flatMap(
      (name) =>
        [
          [name, name],
          [name.replace(/^placement:/, ''), name],
        ] as const,
    ),
  );
  const near = names.map((name) => known.get(nearName(name, known.keys()) ?? '')).find((name) => name !== undefined);
  const question = near === undefined ? '' : ` Did you mean ${near}?`;
  printError(`placement-manage: ${problem}${question} "placement-manage policy list" prints all rules.`);
  process.exitCode = noSuchRule;
}

/** Whether the check of a rule, or of a rule that it refers to, compares the project of the request. */
function asksForProject(rule: Rule, rules: Rules): boolean {
  const reached = new Set([rule]);
  // The loop also goes through those that it adds.
  for (const { check } of reached) {
    if (printCheck(check).includes('%(project_id)s')) return true;
    for (const name of referredRules(check)) {
      const other = findRule(rules, name);
      if (other !== undefined) reached.add(other);
    }
  }
  return false;
}

/** Warnings go to standard error, so that they do not mix with the output. */
const onStandardError = {
  info: (line: string) => printError(line),
  warn: (line: string) => printError(line),
  error: (line: string) => printError(line),
};

const identityOf = ({ roles, user, project, domain, systemScope }: CheckFlags): Identity => ({
  ...noIdentity,
  userId: user,
  projectId: project,
  domainId: domain,
  systemScope,
  roles: (roles ?? '')
    .split(',')
    .map((role) => role.trim())
    .filter((role) => role !== ''),
});

function describeRule(rule: Rule): string {
  const { name, check } = rule;
  const comments = [
    ...(rule.default?.operations ?? []),
    ...(rule.default?.scopeTypes === undefined ? [] : [`scope: ${rule.default.scopeTypes.join(', ')}`]),
    rule.file === undefined || rule.default === undefined
      ? originOf(rule)
      : `${originOf(rule)}, instead of ${JSON.stringify(rule.default.check)}`,
  ];
  return `# ${comments.join('; ')}\n${JSON.stringify(name)}: ${JSON.stringify(printCheck(check))}`;
}

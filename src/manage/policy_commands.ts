import type { Command } from 'commander';
import { printCheck } from '../access/policy/check.ts';
import { explainDecision, originOf } from '../access/policy/explain.ts';
import { loadRules } from '../access/policy/policy.ts';
import type { PolicySettings } from '../access/policy/read_files.ts';
import type { Rule } from '../access/policy/rules.ts';
import { type Identity, noIdentity } from '../rest/identity.ts';

/** The flags of `policy check`: they describe the token and the target of a request. */
type CheckFlags = {
  readonly roles?: string;
  readonly user: string;
  readonly project?: string;
  readonly domain?: string;
  readonly systemScope?: string;
  readonly targetProject?: string;
};

/** Adds `policy list` and `policy check` to a program. Neither needs the database. */
export function addPolicyCommands(program: Command, settings: () => PolicySettings): void {
  const policy = program.command('policy').description('the rules that decide which token may do what');
  policy.action(() => policy.outputHelp());
  policy
    .command('list')
    .description('print the rules in effect as a policy file, with the source of each')
    .action(() => {
      for (const rule of loadRules(settings(), onStandardError).byName.values()) console.log(describeRule(rule));
    });
  policy
    .command('check')
    .description('explain whether a rule allows a request; exit code 0 if it does, else 1')
    .argument('<rule>', 'the rule, such as placement:usages')
    .option('--roles <names>', 'the roles of the token, separated by commas')
    .option('--user <id>', 'the user of the token', 'user')
    .option('--project <id>', 'the project of the token')
    .option('--domain <id>', 'the domain, for a token of scope domain')
    .option('--system-scope <scope>', 'all, for a token of scope system')
    .option(
      '--target-project <id>',
      'the project of the usages, for placement:usages; default: the project of the token',
    )
    .action((name: string, flags: CheckFlags) => {
      const identity = identityOf(flags);
      const target = { project_id: flags.targetProject ?? identity.projectId ?? null, user_id: identity.userId };
      const { allowed, lines } = explainDecision(loadRules(settings(), onStandardError), name, identity, target);
      for (const line of lines) console.log(line);
      process.exitCode = allowed ? 0 : 1;
    });
}

/** Warnings go to standard error, so that they do not mix with the output. */
const onStandardError = {
  info: (line: string) => console.error(line),
  warn: (line: string) => console.error(line),
  error: (line: string) => console.error(line),
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

import type { Command } from 'commander';
import { type Identity, nobody } from '../api/identity.ts';
import { printCheck } from '../policy/check.ts';
import { explainDecision, originOf } from '../policy/explain.ts';
import { loadRules } from '../policy/policy.ts';
import type { PolicySettings } from '../policy/read_files.ts';
import type { Rule } from '../policy/rules.ts';

/** How `policy check` describes who asks, and for what. */
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
  const policy = program.command('policy').description('who may do what');
  policy.action(() => policy.outputHelp());
  policy
    .command('list')
    .description('print the rules that hold, as a policy file, and where each comes from')
    .action(() => {
      for (const rule of loadRules(settings(), onStandardError).byName.values()) console.log(describeRule(rule));
    });
  policy
    .command('check')
    .description('explain whether a rule lets a request pass; exit code 0 where it does, else 1')
    .argument('<rule>', 'the rule, such as placement:usages')
    .option('--roles <names>', 'the roles of the token, with commas between')
    .option('--user <id>', 'the user of the token', 'user')
    .option('--project <id>', 'the project of the token')
    .option('--domain <id>', 'the domain, for a token of scope domain')
    .option('--system-scope <scope>', 'all, for a token of scope system')
    .option('--target-project <id>', 'the project that is asked about, for placement:usages; else that of the token')
    .action((name: string, flags: CheckFlags) => {
      const identity = identityOf(flags);
      const target = { project_id: flags.targetProject ?? identity.projectId ?? null, user_id: identity.userId };
      const { allowed, lines } = explainDecision(loadRules(settings(), onStandardError), name, identity, target);
      for (const line of lines) console.log(line);
      process.exitCode = allowed ? 0 : 1;
    });
}

/** Warnings do not mix with what is printed. */
const onStandardError = {
  info: (line: string) => console.error(line),
  warn: (line: string) => console.error(line),
  error: (line: string) => console.error(line),
};

const identityOf = ({ roles, user, project, domain, systemScope }: CheckFlags): Identity => ({
  ...nobody,
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

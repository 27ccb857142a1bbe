import { type Command, InvalidArgumentError } from 'commander';
import { namedRoles } from '../access/policy/evaluate.ts';
import { loadRules } from '../access/policy/policy.ts';
import type { Rules } from '../access/policy/rules.ts';
import { readDuration } from '../cli/duration.ts';
import { drawn } from '../cli/table.ts';
import { isUuidLike, normalUuid } from '../placement/uuid.ts';
import { type ConfigFlags, loadConfig } from '../start/config_flags.ts';
import { addCommandGroup } from '../start/run_command.ts';
import { escapeControlsInJson, print, printError } from '../text/print.ts';
import { nearName } from '../text/strings.ts';
import { withTokenStore } from './token_store.ts';

type CreateFlags = {
  readonly user: string;
  readonly project: string;
  readonly role: readonly string[];
  readonly expiresIn?: number;
};

/** Adds `token create`, `token list` and `token revoke` to a program. */
export function addTokenCommands(program: Command, flags: () => ConfigFlags): void {
  const token = addCommandGroup(program, 'token', 'tokens of the service, for [api] auth_strategy = tokens');
  token
    .command('create')
    .description('make a token, and print it: it is shown only now')
    .requiredOption('--user <id>', 'the user that the token is for', ownerId)
    .requiredOption('--project <id>', 'the project that the token is for', ownerId)
    .requiredOption('--role <name>', 'a role of the token: member, reader, admin, service; may be repeated', collect)
    .option(
      '--expires-in <time>',
      'how long it is valid: 90d, 12h, 30m or 45s; without it, until it is revoked',
      readDuration,
    )
    .action(({ user, project, role, expiresIn }: CreateFlags) =>
      withTokenStore(flags(), async (store) => {
        const wanted = { userId: user, projectId: project, roles: [...new Set(role)], seconds: expiresIn };
        const { text, shown } = await store.create(wanted);
        const until = shown.expires_at === null ? 'until it is revoked' : `until ${shown.expires_at}`;
        printError(
          `Token ${shown.id} of user ${user} in project ${project}, ${shown.roles.join(', ')}, is valid ${until}. It is shown only now:`,
        );
        print(text);
        for (const warning of roleWarnings(shown.roles, flags())) printError(warning);
      }),
    );
  token
    .command('list')
    .description('print all tokens, without the tokens themselves')
    .option('--json', 'as JSON')
    .action(({ json }: { readonly json?: true }) =>
      withTokenStore(flags(), async (store) => {
        const all = await store.list();
        if (json) return print(escapeControlsInJson(JSON.stringify(all, undefined, 2)));
        const head = ['id', 'begins with', 'user', 'project', 'roles', 'created', 'ends', 'last used (hour)'];
        // Where a token replaces another one of its user, the older one is the one to revoke.
        const oldestFirst = all.toSorted((one, other) => Date.parse(one.created_at) - Date.parse(other.created_at));
        const rows = oldestFirst.map(({ id, prefix, user_id, project_id, roles, created_at, expires_at, used_at }) => [
          id,
          prefix,
          user_id,
          project_id,
          roles.join(', '),
          created_at,
          expires_at ?? '',
          used_at === null ? '' : `${used_at.slice(0, 13)}:00Z`,
        ]);
        print(drawn({ head, rows }));
      }),
    );
  token
    .command('revoke')
    .description('delete a token: within 5 s no process takes it any more')
    .argument('<id>', 'the id that "token list" shows', uuid)
    .action((id: string) =>
      withTokenStore(flags(), async (store) => {
        if (await store.revoke(id)) return print(`Token ${id} is revoked. Within 5 s no process takes it any more.`);
        printError(`placement-manage: there is no token ${id}. "placement-manage token list" prints all.`);
        process.exitCode = 1;
      }),
    );
}

/** A sentence for each role that no rule of the policy in force requires: the role grants nothing. */
function roleWarnings(roles: readonly string[], flags: ConfigFlags): readonly string[] {
  const { osloPolicy } = loadConfig(flags).config;
  let rules: Rules;
  try {
    rules = loadRules(osloPolicy, { info: () => {}, warn: () => {}, error: () => {} });
  } catch {
    return []; // the service reports the mistakes in the files, and does not start with them
  }
  const named = new Set([...rules.byName.values()].flatMap(({ check }) => namedRoles(check)));
  const lowered = new Set(Array.from(named, (role) => role.toLowerCase()));
  return roles
    .filter((role) => !lowered.has(role.toLowerCase()))
    .map((role) => {
      const near = nearName(role, named);
      const meant = near === undefined ? '' : ` Did you mean ${near}?`;
      return `Warning: no rule of the policy in force (${osloPolicy.policyFile}) asks for the role ${role}.${meant}`;
    });
}

function ownerId(value: string): string {
  const length = [...value].length;
  if (length >= 1 && length <= 255) return value;
  throw new InvalidArgumentError(`The id of a user or project has 1 to 255 characters, and this one has ${length}.`);
}

const collect = (value: string, before: readonly string[] = []): readonly string[] => {
  if (!/^[^\s,]{1,255}$/.test(value)) {
    throw new InvalidArgumentError('A role is one word of 1 to 255 characters, without commas.');
  }
  return [...before, value];
};

function uuid(text: string): string {
  if (isUuidLike(text)) return normalUuid(text);
  throw new InvalidArgumentError('It is the id of a token, a UUID, and not the token itself.');
}

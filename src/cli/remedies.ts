import type { Command } from 'commander';
import { isTooOld } from '../client/errors.ts';
import { ApiError, type VersionError } from '../client/index.ts';
import type { ConnectionFlags } from './connection.ts';
import { CommandFailure } from './exit_codes.ts';
import { shellWord } from './shell_word.ts';

/** What the user can do about a refusal, by the text of the server. `$1` is what the text names, PROVIDER what the command names. */
const remedies: readonly (readonly [says: RegExp, remedy: string])[] = [
  [
    /Class is in use in inventory/,
    '"placement provider tree --usage" shows which providers have it, "placement inventory delete" takes it from one.',
  ],
  [
    /trait .* is in use by a resource provider/,
    '"placement provider list --required TRAIT" shows which have it, "placement trait remove" takes it from one.',
  ],
  [
    /has allocations|in use/i,
    '"placement allocation list PROVIDER" shows the consumers that have something of it, ' +
      '"placement release --in-tree PROVIDER" ends all that they have of its tree (--dry-run shows it first).',
  ],
  [/has child resource providers/, 'Delete them first; "placement provider tree" shows them.'],
  [
    /No such resource class/,
    '"placement class list" shows those there are, "placement class create" makes custom ones.',
  ],
  [/No such trait/, '"placement trait list" shows those there are, "placement trait create" makes custom ones.'],
  [
    /Project '(.+)' is limited to/,
    '"placement limit show $1" shows its limits and what it uses of them, "placement holdings --project $1" where that is.',
  ],
  [
    /exceed the capacity/,
    '"placement usage show PROVIDER" tells what is free, "placement candidate list" where it fits.',
  ],
  [
    /violate inventory constraints|Inventory for .* invalid/,
    '"placement inventory list PROVIDER" shows what it has, with min_unit, max_unit and step_size.',
  ],
];

const remediesByStatus: Readonly<Record<number, string>> = {
  401:
    'The token is not valid: check OS_TOKEN. Where the service has tokens of its own, "placement-manage token create" makes one; with ' +
    'Keystone set OS_AUTH_URL, OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME.',
  403:
    'This user may not do this. Most requests need the role admin or service. A member may do this for its own project only, if at all. ' +
    'Without authentication (noauth2) only the user admin may: export OS_TOKEN=admin.',
};

/** The texts of this service and OpenStack Placement for a path that they do not have. Answers of other servers have no request id. */
const isOfNoPath = /^(There is no path .* here\.|The resource could not be found\.|Not Found)$/s;

const noService =
  'There is no placement service at this path of the server: check OS_ENDPOINT, which has no path unless a proxy adds one.';

/**
 * Adds to a refusal of the server what the user can do about it.
 *
 * @param ran the command that was refused
 */
export function withRemedy(problem: unknown, ran: Command | undefined): unknown {
  if (isTooOld(problem)) return withoutNamedVersion(problem, ran);
  if (!(problem instanceof ApiError)) return problem;
  if (problem.status === 404 && (problem.requestId === undefined || isOfNoPath.test(problem.detail))) {
    return new CommandFailure('noAnswer', `${problem.message}\n${noService}`, { cause: problem });
  }
  const remedy = remedyBy(problem.detail, ran) ?? remediesByStatus[problem.status];
  if (remedy === undefined) return problem;
  const mayName = problem.status === 403 && mayNameProject(ran);
  // The service names the parameter where it knows that the project is what is missing.
  const message = mayName ? problem.message.replace(namesParameter, '$1--project ') : problem.message;
  const more = mayName && message === problem.message ? ` ${ownProject}` : '';
  return new Error(`${message}\n${remedy}${more}`, { cause: problem });
}

/** Names what has chosen the version, if anything has. */
function withoutNamedVersion(problem: VersionError, ran: Command | undefined): Error {
  const named = ran?.optsWithGlobals<ConnectionFlags>().osPlacementApiVersion;
  if (!named) return problem;
  return new Error(
    `${problem.message}\nOS_PLACEMENT_API_VERSION (or --os-placement-api-version) is ${named}: unset it for this command, which finds the best ` +
      'version by itself.',
    { cause: problem },
  );
}

function remedyBy(detail: string, ran: Command | undefined): string | undefined {
  const provider = ran?.registeredArguments[0]?.name() === 'provider' ? ran.args[0] : undefined;
  for (const [says, remedy] of remedies) {
    const found = says.exec(detail);
    if (found === null) continue;
    const named = provider === undefined ? remedy : remedy.replaceAll('PROVIDER', () => shellWord(provider));
    return named.replaceAll('$1', () => shellWord(found[1] ?? ''));
  }
  return undefined;
}

/** How the service says how a member asks for what its own project has. */
const namesParameter = /(It may ask for what its own project has: )project_id=/;

const ownProject = 'Where a policy lets users see what their own project has, name it by --project.';

/** Whether the command has an option for a project that was not set. */
const mayNameProject = (ran: Command | undefined): boolean =>
  ran?.options.some(({ long }) => long === '--project') === true && ran.getOptionValue('project') === undefined;

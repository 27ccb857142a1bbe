import { ApiError, AuthError, ConnectionError, PlacementError, VersionError } from '../client/index.ts';
import { sysexits } from '../text/sysexits.ts';

/** The exit codes of the command, and their meaning. Codes from 65 on are of sysexits.h, as in the programs of the service. */
export const exitCodes = {
  done: { code: 0, meaning: 'everything was done' },
  failed: { code: 1, meaning: 'another failure, such as a service that is too old' },
  wrongUsage: { code: 2, meaning: 'the command line or the environment is wrong' },
  full: { code: 3, meaning: 'no room: it fits nowhere, or a provider has too little left' },
  limited: { code: 4, meaning: 'a limit of the project refuses it' },
  conflict: { code: 5, meaning: 'conflict: it exists already, is in use, or was changed by another program' },
  notYet: { code: 6, meaning: 'not yet: "drain --until-empty" has waited for as long as --wait says' },
  wrongInput: {
    code: sysexits.dataError,
    meaning: 'wrong input: there is no such thing, or the service refuses a value',
  },
  noAnswer: {
    code: sysexits.unavailable,
    meaning: 'no answer: the service or Keystone cannot be reached, is overloaded or has an error',
  },
  forbidden: {
    code: sysexits.noPermission,
    meaning: 'forbidden: the token or the password is refused, or a right is missing',
  },
  interrupted: { code: 130, meaning: 'interrupted by Ctrl-C' },
} as const;

/** How a command ends. */
type Ending = keyof typeof exitCodes;

/** A failure that the command itself finds, with the exit code that it has. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  readonly ending: Ending;

  constructor(ending: Ending, message: string, options?: ErrorOptions) {
    super(message, options);
    this.ending = ending;
  }
}

/** The exit code for what a command threw, or for its cause. */
export const exitCodeOf = (error: unknown): number => exitCodes[endingOf(error)].code;

function endingOf(error: unknown): Ending {
  if (error instanceof CommandFailure) return error.ending;
  if (error instanceof ConnectionError) return 'noAnswer';
  if (error instanceof AuthError) return error.status === undefined ? 'wrongUsage' : endingOfStatus(error.status);
  if (error instanceof ApiError) return endingOfRefusal(error);
  // Something else has answered.
  if (error instanceof PlacementError && !(error instanceof VersionError)) return 'noAnswer';
  return error instanceof Error && error.cause !== undefined ? endingOf(error.cause) : 'failed';
}

function endingOfRefusal({ status, code, detail }: ApiError): Ending {
  switch (code) {
    case 'placement.no_candidates':
    case 'placement.capacity_exceeded':
      return 'full';
    case 'placement.limit_exceeded':
      return 'limited';
    case 'placement.inventory_absent':
    case 'placement.inventory_constraints':
      return 'wrongInput';
  }
  if (status !== 409) return endingOfStatus(status);
  // Versions of OpenStack Placement distinguish these by the text alone.
  if (/exceed the capacity/.test(detail)) return 'full';
  return /violate inventory constraints|Inventory for .* invalid/.test(detail) ? 'wrongInput' : 'conflict';
}

function endingOfStatus(status: number): Ending {
  if (status === 401 || status === 403) return 'forbidden';
  if (status === 412) return 'conflict';
  if (status >= 500 || status === 429 || (status >= 300 && status < 400)) return 'noAnswer';
  return [400, 404, 413].includes(status) ? 'wrongInput' : 'failed';
}

/** The table of exit codes for the help. */
export const exitCodeHelp = (): string => {
  const lines = Object.values(exitCodes).map(({ code, meaning }) => `  ${String(code).padStart(3)}  ${meaning}`);
  return `\nExit codes:\n${lines.join('\n')}`;
};

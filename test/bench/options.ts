import { Command, InvalidArgumentError, Option } from 'commander';
import { positive } from '../support/command_line.ts';
import type { RunningServer } from './running_server.ts';

/** Our own servers that can be measured, by their names in the table. */
export const ownServers = ['postgresql', 'embedded', 'two-processes'] as const;
export type OwnServer = (typeof ownServers)[number];

export type Options = {
  /** The ratios refer to the first of them. */
  readonly running: readonly RunningServer[];
  readonly own: readonly OwnServer[];
  /** The URL of the PostgreSQL server of our own servers, for a superuser; undefined if one is started for them. */
  readonly postgresql: string | undefined;
  /** Measured instead of the servers: our own service with these numbers of processes on one PostgreSQL. */
  readonly processes: readonly number[] | undefined;
  /** Instead of everything else: two processes of this service on one PostgreSQL are kept busy for this time. */
  readonly endureMs: number | undefined;
  /** Numbers of flat providers, the smallest first. */
  readonly sizes: readonly number[];
  readonly trees: number;
  readonly rounds: number;
  /** Rounds before those that count: V8 compiles what each process does often. */
  readonly warmUpRounds: number;
  /** For so long each server does each of a few kinds of work before it is measured. */
  readonly warmUpMs: number;
  readonly durationMs: number;
  readonly only: RegExp;
  readonly json: string | undefined;
  readonly profileFolder: string | undefined;
};

type Flags = {
  readonly server?: ReadonlyMap<string, string>;
  readonly pid?: ReadonlyMap<string, string>;
  readonly database?: ReadonlyMap<string, string>;
  readonly own?: readonly OwnServer[];
  readonly postgresql?: string;
  readonly processes?: readonly number[];
  readonly endure?: number;
  readonly sizes?: readonly number[];
  readonly trees?: number;
  readonly rounds?: number;
  readonly seconds?: number;
  readonly warmUp?: number;
  readonly only?: RegExp;
  readonly json?: string;
  readonly cpuProf?: string;
  readonly quick?: true;
};

/** Reads the command line. If it is wrong, the process ends with a message. */
export function readOptions(args: readonly string[]): Options {
  const command = new Command('bench')
    .description(
      'Measures servers of the Placement API beside each other, and what the machine allows. Without options: our own ' +
        'service on PostgreSQL, on the embedded database, and two processes of it on one PostgreSQL. The first server is ' +
        'what the ratios refer to.',
    )
    .option(
      '--server <name=URL>',
      'also a server that runs already, without authentication (URL,URL: its processes)',
      named,
    )
    .option('--database <name=URL>', 'its PostgreSQL database; EVERYTHING IN IT IS REMOVED', named)
    .option('--pid <name=PID>', 'its first process (PID,PID: its processes), for its CPU time and memory', named)
    .option('--own <list>', `which of our own servers: ${ownServers.join(', ')}, or none (default: all)`, ownList)
    .option(
      '--postgresql <URL>',
      'a PostgreSQL server for our own servers, as superuser, with 400 connections (default: one is started, on fresh data)',
    )
    .addOption(
      new Option(
        '--processes <list>',
        'instead: what an operation costs with so many processes on one PostgreSQL, each with 16 connections (such as 1,2,4,8)',
      )
        .argParser(numberList)
        .conflicts(['server', 'own']),
    )
    .addOption(
      new Option(
        '--endure <time>',
        'instead: keeps two processes on one PostgreSQL busy for so long (such as 12m), and compares the beginning with the end',
      )
        .argParser(duration)
        .conflicts(['server', 'own', 'processes']),
    )
    .option(
      '--sizes <list>',
      'numbers of providers without children (default: 1000,10000,100000; with --processes 10000)',
      numberList,
    )
    .option('--trees <number>', 'number of provider trees (default: 1000)', positive)
    .option('--rounds <number>', 'how often everything is measured, the servers in turn (default: 3)', positive)
    .option(
      '--seconds <number>',
      'how long each measurement takes (default: 1); with --processes for each process',
      positive,
    )
    .option(
      '--warm-up <seconds>',
      'for how long each server creates providers, claims and reads before it is measured (default: not at all)',
      positive,
    )
    .option('--only <regex>', 'only the workloads and limits whose name matches', regex)
    .option('--json <file>', 'also write all figures there')
    .option('--cpu-prof <folder>', 'leave a profile of the CPU time of our own servers there')
    .option('--quick', 'see whether it works: 100 providers, 10 trees, one short round')
    .parse(args, { from: 'user' });
  const flags = command.opts<Flags>();
  const { quick = false } = flags;
  return {
    running: [...(flags.server ?? [])].map(([name, urls]) => {
      const databaseUrl = flags.database?.get(name);
      if (databaseUrl === undefined) {
        return command.error(`error: --server ${name} needs --database ${name}=postgresql://..., for its data.`);
      }
      const pids = flags.pid?.get(name)?.split(',').map(positive) ?? [];
      return { name, urls: urls.split(','), pids, databaseUrl };
    }),
    own: flags.own ?? ownServers,
    postgresql: flags.postgresql,
    processes: flags.processes,
    endureMs: flags.endure,
    sizes: flags.sizes ?? (quick ? [100] : flags.processes === undefined ? [1000, 10_000, 100_000] : [10_000]),
    trees: flags.trees ?? (quick ? 10 : 1000),
    rounds: flags.rounds ?? (quick ? 1 : 3),
    warmUpRounds: quick || flags.processes === undefined ? 0 : 1,
    warmUpMs: 1000 * (flags.warmUp ?? 0),
    durationMs: 1000 * (flags.seconds ?? (quick ? 0.05 : 1)),
    only: flags.only ?? /./,
    json: flags.json,
    profileFolder: flags.cpuProf,
  };
}

const numberList = (text: string): readonly number[] =>
  text
    .split(',')
    .map(positive)
    .toSorted((left, right) => left - right);

/** Reads a time such as 30s, 12m or 2h. @returns milliseconds */
function duration(text: string): number {
  const [, value, unit] = /^(\d+(?:\.\d+)?)(s|m|h)$/.exec(text) ?? [];
  const unitMs = { s: 1_000, m: 60_000, h: 3_600_000 }[unit ?? ''];
  if (unitMs === undefined) throw new InvalidArgumentError('It must be a time such as 30s, 12m or 2h.');
  return positive(value ?? '') * unitMs;
}

function named(text: string, before: ReadonlyMap<string, string> = new Map()): ReadonlyMap<string, string> {
  const [, name, value] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('It must be NAME=VALUE.');
  return new Map([...before, [name, value]]);
}

function ownList(text: string): readonly OwnServer[] {
  const wanted = text === 'none' ? [] : text.split(',');
  const unknown = wanted.filter((name) => !ownServers.some((own) => own === name));
  if (unknown.length > 0) throw new InvalidArgumentError(`There is no ${unknown.join(', ')}.`);
  return ownServers.filter((own) => wanted.includes(own));
}

function regex(text: string): RegExp {
  try {
    return new RegExp(text, 'i');
  } catch (error) {
    throw new InvalidArgumentError(String(error));
  }
}

import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { openSource, readSourceUrl, type SourceSettings } from '../../src/manage/import/source.ts';
import { type Engine, engines } from '../support/engines.ts';
import { hasMariadb } from './install.ts';
import { type Mariadb, startMariadb } from './mariadb.ts';
import { type Answer, startReplay } from './replay.ts';

/** A small database of OpenStack Placement to import from, with the data of cloud.sql. */
export type Cloud = {
  /** Its URL, with user and password. */
  readonly url: string;
  /** Runs a file of this folder on it. */
  change(file: string): Promise<void>;
  /** Ends all connections to the database. */
  cut(): Promise<void>;
};

/** A server with such databases. */
export type SourceServer = { createCloud(): Promise<Cloud>; stop(): Promise<void> };

/** A way to have such a server, and the databases into which it is imported. */
type SourceServers = {
  readonly name: string;
  readonly start: () => Promise<SourceServer>;
  readonly into: readonly Engine[];
};

/** A server that answers as a real MariaDB did, and a real one if there is one. @param tests the test file, which has its own recording */
export const sourceServers = (tests: string): readonly SourceServers[] => [
  { name: 'what MariaDB answered', start: () => startRecorded(tests), into: engines },
  ...(process.env.RECORD_IMPORT === undefined && hasMariadb()
    ? [{ name: 'MariaDB', start: startReal, into: ['postgresql'] as const }]
    : []),
];

/** A real MariaDB server. */
async function startReal(): Promise<SourceServer> {
  const mariadb = await startMariadb();
  let count = 0;
  return {
    createCloud: async () => {
      count += 1;
      const name = `cloud_${count}`;
      const url = await mariadb.createDatabase(name);
      const change = (file: string) => runFile(mariadb, name, file);
      await change('schema.sql');
      await change('cloud.sql');
      const cut = async () => {
        const connections = await mariadb.execute(
          'information_schema',
          `select id from processlist where db = '${name}' and user = 'placement'`,
        );
        for (const [id] of connections) await mariadb.execute('mysql', `kill ${id}`);
      };
      return { url, change, cut };
    },
    stop: mariadb.stop,
  };
}

/**
 * A server that answers each statement with the recorded answer of a real MariaDB, from a file of recordings/.
 *
 * With RECORD_IMPORT in the environment the answers come from a real MariaDB, and the file is written from them.
 */
async function startRecorded(tests: string): Promise<SourceServer> {
  const recordingFile = path.join(import.meta.dirname, 'recordings', `${tests}.json`);
  const real = process.env.RECORD_IMPORT === undefined ? undefined : await startReal();
  // The answers, by the changes to the database before, and by statement.
  const recording: Record<string, Record<string, Answer>> = real === undefined
    ? JSON.parse(await readFile(recordingFile, 'utf8'))
    : {};
  const stops: (() => void)[] = [];
  return {
    createCloud: async () => {
      let state = 'cloud.sql';
      const cloud = await real?.createCloud();
      const replay = await startReplay(async (statement) => {
        if (!statement.startsWith('select ')) return null; // the start of the transaction
        const key = createHash('sha256').update(statement).digest('hex').slice(0, 16);
        const answers = recording[state] ?? {};
        recording[state] = answers;
        if (cloud !== undefined) answers[key] = await askReal(cloud.url, statement);
        const answer = answers[key];
        if (answer === undefined) throw new Error(`recordings/${tests}.json has no answer to ${statement}`);
        return answer;
      });
      stops.push(replay.stop);
      return {
        url: `mysql://placement:secret@127.0.0.1:${replay.port}/cloud`,
        change: async (file) => {
          await cloud?.change(file);
          state += ` ${file}`;
        },
        cut: async () => replay.cut(),
      };
    },
    stop: async () => {
      for (const stop of stops) stop();
      if (real === undefined) return;
      await writeFile(recordingFile, `${JSON.stringify(recording, null, 1)}\n`);
      await real.stop();
    },
  };
}

/** The settings with which `openSource` connects to a cloud. */
export function settingsOf(url: string): SourceSettings {
  const read = readSourceUrl(url);
  if ('problem' in read) throw new Error(read.problem);
  return read.value;
}

async function runFile(mariadb: Mariadb, database: string, file: string): Promise<void> {
  const text = await readFile(path.join(import.meta.dirname, file), 'utf8');
  await mariadb.execute(database, ...text.split(/;\n/).filter((statement) => statement.trim() !== ''));
}

async function askReal(url: string, statement: string): Promise<Answer> {
  const source = await openSource(settingsOf(url));
  try {
    return await source.query(statement);
  } finally {
    source.close();
  }
}

import { type FileHandle, open } from 'node:fs/promises';
import { type Kysely, sql } from 'kysely';
import type { Database } from '../../../db/engine/connect.ts';
import { failureKind } from '../../../db/engine/failures.ts';
import { withFreeIds } from '../../../db/engine/taken_ids.ts';
import { analyzeTables } from '../../../db/schema/analyze_tables.ts';
import { providerTagsAreWritten } from '../../../db/statements/entity_tags.ts';
import {
  ensureAggregates,
  type InventoryToInsert,
  insertInventories,
  insertMembers,
  insertProviders,
  insertProviderTags,
  insertTraits,
  type ProviderToInsert,
} from '../../../db/statements/load/insert_providers.ts';
import { takeProviderIds } from '../../../db/statements/load/read_beside.ts';
import type { Tables } from '../../../db/tables.ts';
import { inventoryTag } from '../../placement/entity_tag.ts';
import { decodeUtf8 } from '../../text/strings.ts';
import { type JudgedPart, judgePart, tagsOf } from './judge_part.ts';
import { type FileProvider, type Problem, parseLine } from './provider_line.ts';

/** How many providers a load found in a file, and how many of them were not there yet. */
type LoadedFile = { readonly found: number; readonly written: number };

/** Receives the progress of a load. */
type LoadReport = {
  /** All lines were checked and are right. */
  checked(lines: number): void;
  loaded(done: number, total: number): void;
};

/** The number of lines that are written in one transaction. */
const usualPart = 5000;

/** The largest number of problems in an error; more of them would not help. */
const mostProblems = 20;

/**
 * Loads the providers of a file, one JSON object a line. All lines are checked before the first is written. They are
 * written in parts, each in one transaction; if a load was interrupted, the same call continues it.
 *
 * @throws Error that names the lines that are wrong
 */
export async function loadFile(
  file: string,
  database: Database,
  report: LoadReport,
  partSize = usualPart,
): Promise<LoadedFile> {
  const found = await checkFile(file, database, partSize);
  report.checked(found);
  let done = 0;
  let written = 0;
  let writing: Promise<void> = Promise.resolve();
  const write = async (part: readonly FileProvider[]): Promise<void> => {
    const outcome = await writePart(database, part);
    if (typeof outcome !== 'number')
      throw refusal(outcome, outcome.length, `The lines before ${part[0]?.line} are loaded`);
    written += outcome;
    done += part.length;
    report.loaded(done, found);
  };
  for await (const part of partsOf(file, partSize)) {
    // The next lines are read while the database writes these.
    await writing;
    const [right, [wrong]] = sorted(part);
    if (wrong !== undefined) throw new Error(`${file} was changed while it was loaded: see line ${wrong.line}.`);
    writing = write(right);
    writing.catch(() => {}); // the error is thrown where it is awaited
  }
  await writing;
  if (written > 0) await analyzeTables(database.unlimited);
  return { found, written };
}

/** @returns how many providers there are. @throws Error that names the lines that are wrong */
async function checkFile(file: string, { unlimited }: Database, partSize: number): Promise<number> {
  const lineOf = new Map<string, number>();
  const lineOfName = new Map<string, number>();
  const problems: Problem[] = [];
  let wrong = 0;
  let done = 0;
  const refuse = (found: readonly Problem[]): void => {
    wrong += found.length;
    problems.push(...found.slice(0, mostProblems - problems.length));
  };
  for await (const part of partsOf(file, partSize)) {
    const [right, unreadable] = sorted(part);
    refuse(unreadable);
    const late = new Map(right.map(({ uuid, line }) => [uuid, line]));
    for (const provider of right) {
      const { line, uuid, name } = provider;
      const [same, namesake] = [lineOf.get(uuid), lineOfName.get(name)];
      if (same !== undefined) refuse([{ line, problem: `uuid: ${uuid} is also in line ${same}` }]);
      else if (namesake !== undefined) {
        refuse([{ line, problem: `name: ${JSON.stringify(name)} is also in line ${namesake}` }]);
      }
      const parentLine = late.get(provider.parentUuid ?? '');
      if (parentLine !== undefined && parentLine > line) {
        refuse([{ line, problem: `parent_provider_uuid: ${provider.parentUuid} comes later, in line ${parentLine}` }]);
      }
      lineOf.set(uuid, line);
      lineOfName.set(name, line);
    }
    const judged = await unlimited.transaction().execute((trx) => judgePart(trx, right, (uuid) => lineOf.has(uuid)));
    refuse(judged.problems);
    done += part.length;
  }
  if (wrong > 0) throw refusal(problems, wrong, 'Nothing is loaded');
  return done;
}

function refusal(problems: readonly Problem[], count: number, state: string): Error {
  const lines = problems
    .toSorted((one, other) => one.line - other.line)
    .map(({ line, problem }) => `line ${line}: ${problem}`);
  const more = count > problems.length ? [`and ${count - problems.length} more`] : [];
  return new Error(
    [`${count === 1 ? 'A line is' : `${count} lines are`} wrong. ${state}.`, ...lines, ...more].join('\n'),
  );
}

const isWrong = (line: FileProvider | Problem): line is Problem => 'problem' in line;

const sorted = (
  part: readonly (FileProvider | Problem)[],
): readonly [right: readonly FileProvider[], wrong: readonly Problem[]] => [
  part.filter((line): line is FileProvider => !isWrong(line)),
  part.filter(isWrong),
];

/** The lines of a file in parts, without empty lines. Each call reads the file again. */
async function* partsOf(file: string, size: number): AsyncGenerator<readonly (FileProvider | Problem)[]> {
  await using handle = await open(file);
  if (!(await handle.stat()).isFile()) throw new Error(`${file} is no file. A load reads it twice.`);
  let part: (FileProvider | Problem)[] = [];
  for await (const [number, bytes] of linesOf(handle)) {
    const line = readLine(number, bytes);
    if (line === undefined) continue;
    part.push(line);
    if (part.length < size) continue;
    yield part;
    part = [];
  }
  if (part.length > 0) yield part;
}

/** The longest line, in bytes. */
const mostLineBytes = 1024 * 1024;

/** The lines of a file, with their numbers from 1 on. Only a line feed ends a line: a name may have other line ends of Unicode. */
async function* linesOf(handle: FileHandle): AsyncGenerator<readonly [number: number, bytes: Uint8Array]> {
  let rest = Buffer.alloc(0);
  let number = 1;
  for await (const chunk of handle.createReadStream({ autoClose: false })) {
    const bytes = Buffer.concat([rest, chunk]);
    let from = 0;
    for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, from)) {
      yield [number, bytes.subarray(from, end)];
      from = end + 1;
      number += 1;
    }
    rest = bytes.subarray(from);
    if (rest.length > mostLineBytes) throw new Error(`Line ${number} has more than ${mostLineBytes} bytes.`);
  }
  if (rest.length > 0) yield [number, rest];
}

const lineFeed = 0x0a;

/** @returns undefined for an empty line */
function readLine(line: number, bytes: Uint8Array): FileProvider | Problem | undefined {
  let content: string;
  try {
    content = decodeUtf8(bytes);
  } catch {
    return { line, problem: 'it is not valid UTF-8' };
  }
  if (line === 1) content = content.replace(/^\ufeff/, ''); // some editors of Windows begin a file with a byte order mark
  return content.trim() === '' ? undefined : parseLine(line, content);
}

/** How often the write of a part is attempted, if another program takes a name or a UUID meanwhile. */
const attempts = 3;

/**
 * Writes some lines in one transaction. The triggers log the change, so that every process of the service reads it.
 *
 * @returns how many providers were written; or the mistakes in the lines, and then none is written
 */
async function writePart({ unlimited }: Database, part: readonly FileProvider[]): Promise<number | readonly Problem[]> {
  const uuids = new Set(part.map(({ uuid }) => uuid));
  for (let attempt = 1; ; attempt++) {
    try {
      return await withFreeIds(unlimited, () =>
        unlimited.transaction().execute(async (trx) => {
          await sql`select from ${providerTagsAreWritten}`.execute(trx);
          const judged = await judgePart(trx, part, (uuid) => uuids.has(uuid));
          if (judged.problems.length > 0) return judged.problems;
          if (judged.missing.length > 0) await insert(trx, judged);
          return judged.missing.length;
        }),
      );
    } catch (error) {
      if (attempt === attempts || failureKind(error) !== 'taken') throw error;
    }
  }
}

async function insert(trx: Kysely<Tables>, { missing, present, classIds, traitIds }: JudgedPart): Promise<void> {
  const ids = await takeProviderIds(trx, missing.length);
  const made = new Map<string, ProviderToInsert>();
  const inventories: InventoryToInsert[] = [];
  const held: { providerId: number; traitId: number }[] = [];
  const members: { providerId: number; aggregate: string }[] = [];
  for (const [index, provider] of missing.entries()) {
    const id = known(ids[index]);
    const { uuid, name, parentUuid } = provider;
    const [own, ofInventories, ofTraits, ofAggregates] = tagsOf(provider);
    const tags = { provider: own, inventories: ofInventories, traits: ofTraits, aggregates: ofAggregates };
    made.set(uuid, { id, uuid, name, tags, ...parentAndRoot(id, parentUuid, made, present) });
    for (const [className, fields] of provider.inventories) {
      inventories.push({
        providerId: id,
        classId: known(classIds.get(className)),
        ...fields,
        tag: inventoryTag(fields),
      });
    }
    for (const trait of provider.traits) held.push({ providerId: id, traitId: known(traitIds.get(trait)) });
    for (const aggregate of provider.aggregates) members.push({ providerId: id, aggregate });
  }
  const providers = [...made.values()];
  await insertProviders(providers).execute(trx);
  await insertProviderTags(providers).execute(trx);
  if (inventories.length > 0) await insertInventories(inventories).execute(trx);
  if (held.length > 0) await insertTraits(held).execute(trx);
  if (members.length === 0) return;
  await ensureAggregates([...new Set(members.map(({ aggregate }) => aggregate))]).execute(trx);
  await insertMembers(members).execute(trx);
}

function parentAndRoot(
  id: number,
  parentUuid: string | null,
  made: ReadonlyMap<string, ProviderToInsert>,
  present: JudgedPart['present'],
): Pick<ProviderToInsert, 'parentId' | 'rootId' | 'outsideId'> {
  if (parentUuid === null) return { parentId: null, rootId: id, outsideId: null };
  const parent = made.get(parentUuid);
  if (parent !== undefined) return { parentId: parent.id, rootId: parent.rootId, outsideId: parent.outsideId };
  const outside = known(present.get(parentUuid));
  return { parentId: outside.id, rootId: null, outsideId: outside.id };
}

/** A value that exists if the lines were judged to be right. */
function known<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('A line that was judged to be right refers to something that is not there.');
  return value;
}

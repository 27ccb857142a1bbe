import type { Command } from 'commander';
import { mayPass } from '../client/changes.ts';
import type { FollowedChange, FollowOptions, Placement, WholeProvider } from '../client/index.ts';
import { pause } from '../client/send.ts';
import { withName } from '../placement/uuid.ts';
import { messageOf, printError } from '../text/print.ts';
import { counted } from '../text/strings.ts';
import { resourcesText } from './amounts.ts';
import { differences, listChanges } from './differences.ts';
import { uuidIfNamed } from './find_provider.ts';
import { shellOf } from './shell.ts';

type WatchOptions = {
  readonly parts?: string;
  readonly class?: string;
  readonly inTree?: string;
  readonly since?: string;
};

/** The content of a line: what has changed, and how. */
type ChangeLine = {
  readonly what: 'provider' | 'consumer' | 'traits' | 'resource classes' | 'everything';
  readonly uuid?: string;
  /** The name of the provider or consumer. */
  readonly name?: string | undefined;
  /** The name of the root of the tree of the provider. */
  readonly root?: string | undefined;
  readonly change: string;
};

const columns = ['time', 'what', 'name', 'root', 'uuid', 'change'];

/** Adds `watch` to the commands. */
export function addWatchCommand(program: Command): void {
  program
    .command('watch')
    .description('print what changes, a line for each change, until it is interrupted; from 2.5')
    .option(
      '--parts <list>',
      'only these: provider, inventories, traits, aggregates, usages, consumers (from 2.9, with the history on), with commas between them',
    )
    .option('--class <class>', 'only providers with an inventory of this resource class; from 2.7')
    .option('--in-tree <provider>', 'only the tree that this provider is in, by its name or UUID; from 2.7')
    .option('--since <token>', 'begin after this token, which --json prints with each change')
    .action(async ({ parts, class: className, inTree, since }: WatchOptions, command: Command) => {
      const { placement, printLines } = shellOf(command, [columns]);
      const options = {
        since,
        resource_class: className,
        in_tree: await uuidIfNamed(placement, inTree),
        parts: parts?.split(',') as FollowOptions['parts'], // the server refuses other parts
      };
      const seen = knownState(placement, options);
      // A wrong address is reported at once. All later requests wait for a service that does not answer.
      await placement.serverVersion();
      const outage = reportedOutage();
      if (since !== undefined) await persistently(seen.read, outage);
      const print = printLines(columns);
      for await (const change of untilUnread((signal) => placement.changes({ ...options, ...outage, signal }))) {
        const line = await persistently(() => seen.lineOf(change), outage);
        const { what, uuid, name, root } = line;
        const time = new Date().toISOString();
        print({ ...change, ...line, time }, [time, what, name, root, uuid, line.change], () => {
          const inTree = root === undefined || root === name ? '' : ` of ${root}`;
          const subject = what === 'consumer' ? `consumer ${withName(uuid ?? '', name)}` : `${name ?? what}${inTree}`;
          return `${time.slice(0, 19)}Z ${subject}: ${line.change}`;
        });
      }
    });
}

/** Yields items until the output cannot be written any more, as after `| head` has ended. */
async function* untilUnread<Item>(items: (signal: AbortSignal) => AsyncIterable<Item>): AsyncGenerator<Item, void> {
  const unread = new AbortController();
  process.stdout.once('error', () => unread.abort());
  try {
    yield* items(unread.signal);
  } catch (error) {
    if (error !== unread.signal.reason) throw error;
  }
}

/** The longest wait before a retry, in milliseconds: a random time up to this, so that commands do not retry at the same time. */
const longestPauseMs = 5_000;

/** What is called when the service does not answer, and when it does. */
type Outage = { onUnavailable(error: unknown): void; onCurrent(): void };

/** Prints a line on standard error when an outage begins, and one when it is over. */
function reportedOutage(): Outage {
  let isAway = false;
  const say = (text: string) => printError(`${new Date().toISOString().slice(0, 19)}Z ${text}`);
  return {
    onUnavailable: (error) => {
      if (!isAway) say(`The service does not answer, and is asked again until it does: ${messageOf(error)}`);
      isAway = true;
    },
    onCurrent: () => {
      if (isAway) say('The service answers again.');
      isAway = false;
    },
  };
}

/** Reads again while the service is unavailable, as `changes` follows it over an outage. */
async function persistently<Result>(
  read: () => Promise<Result>,
  { onUnavailable, onCurrent }: Outage,
): Promise<Result> {
  for (;;) {
    try {
      const result = await read();
      onCurrent();
      return result;
    } catch (error) {
      if (!mayPass(error)) throw error;
      onUnavailable(error);
      await pause(Math.random() * longestPauseMs);
    }
  }
}

/** What is known of the fleet, for names and differences. All of it is read once, and then what changes. */
function knownState(placement: Placement, { parts, in_tree }: FollowOptions) {
  const providers = new Map<string, WholeProvider>();
  const consumers = new Map<string, KnownConsumer>();
  let traits: readonly string[] = [];
  let classes: readonly string[] = [];
  const nameOf = (uuid: string): string => providers.get(uuid)?.name ?? uuid;

  async function read(): Promise<void> {
    providers.clear();
    consumers.clear();
    for await (const one of placement.providerSummaries.list({ in_tree })) providers.set(one.uuid, one);
    if (parts?.includes('consumers')) {
      for await (const { consumer, name, resource_provider, resources } of placement.holdings.list({ in_tree })) {
        const held = consumers.get(consumer)?.held ?? [];
        consumers.set(consumer, { name, held: [...held, `${resourcesText(resources)} of ${resource_provider.name}`] });
      }
    }
    [traits, classes] = await Promise.all([placement.traits.list(), placement.resourceClasses.list()]);
  }

  async function ofProvider(uuid: string, reported: string): Promise<ChangeLine> {
    const old = providers.get(uuid);
    const [now = old] = await placement.providerSummaries.page({ uuids: [uuid] });
    if (now !== undefined) providers.set(uuid, now);
    const root = now && nameOf(now.root_provider_uuid);
    const about = { what: 'provider', uuid, name: now?.name, root } as const;
    if (now === old) {
      providers.delete(uuid);
      return { ...about, change: 'deleted' };
    }
    if (old === undefined || now === undefined) return { ...about, change: `new: ${reported}` };
    const found = differences(old, now, nameOf);
    return { ...about, change: found.length === 0 ? `${reported}, as before` : found.join(', ') };
  }

  async function ofConsumer(uuid: string, ended: string | undefined): Promise<ChangeLine> {
    const old = consumers.get(uuid);
    const had = old === undefined || old.held.length === 0 ? '' : `had ${old.held.join(', ')}`;
    const { allocations, name = null, project_id, expires_at } = await placement.allocations.show(uuid);
    const held = Object.entries(allocations);
    if (held.length === 0) {
      consumers.delete(uuid);
      const end = ended === undefined ? 'gone' : `gone: ${ended}`;
      return { what: 'consumer', uuid, name: old?.name ?? undefined, change: [end, had].filter(Boolean).join(', ') };
    }
    const unknown = held.map(([provider]) => provider).filter((provider) => !providers.has(provider));
    for (const one of await placement.providerSummaries.page({ uuids: unknown })) providers.set(one.uuid, one);
    const texts = held.map(([provider, { resources }]) => `${resourcesText(resources)} of ${nameOf(provider)}`);
    consumers.set(uuid, { name, held: texts });
    const until = expires_at == null ? '' : ` until ${expires_at}`;
    const has = `has ${texts.join(', ')}${until}, project ${project_id}`;
    return { what: 'consumer', uuid, name: name ?? undefined, change: [has, had].filter(Boolean).join('; ') };
  }

  async function lineOf(change: FollowedChange): Promise<ChangeLine> {
    if ('everything' in change) {
      await read();
      const [first, second] = [counted(providers.size, 'provider'), counted(consumers.size, 'consumer')];
      return { what: 'everything', change: `was read: ${first}${parts?.includes('consumers') ? `, ${second}` : ''}` };
    }
    if ('traits' in change) {
      const old = traits;
      traits = await placement.traits.list();
      return { what: 'traits', change: listChanges('', old, traits).join(', ') || 'as before' };
    }
    if ('resource_classes' in change) {
      const old = classes;
      classes = await placement.resourceClasses.list();
      return { what: 'resource classes', change: listChanges('', old, classes).join(', ') || 'as before' };
    }
    if ('consumer' in change) return ofConsumer(change.consumer, 'gone' in change ? change.ended : undefined);
    return ofProvider(change.resource_provider, 'deleted' in change ? 'deleted' : change.parts.join(', '));
  }

  return { read, lineOf };
}

/** A consumer, and what it holds: each as `VCPU=2 of host-1`. */
type KnownConsumer = { readonly name: string | null; readonly held: readonly string[] };

import { forEach } from '../../client/for_each.ts';
import {
  ApiError,
  isConcurrentUpdate,
  isConflict,
  isNotFound,
  type Placement,
  retryConflicts,
  type WholeProvider,
} from '../../client/index.ts';
import { messageOf } from '../../text/print.ts';
import type { FileKeys, FileProvider, FleetFile } from './fleet_file.ts';
import {
  drainedNames,
  type FleetPlan,
  type KeptProvider,
  type ProviderStep,
  type StepContext,
  stepOf,
} from './plan.ts';
import { markOfPool } from './pool_mark.ts';

/** How many providers are written at a time. The service writes simultaneous calls in few statements. */
const providersAtOnce = 16;

/** What was done. */
export type Applied = {
  readonly made: number;
  readonly changed: number;
  readonly deleted: number;
  readonly kept: readonly KeptProvider[];
};

/**
 * Carries out a plan. Each write is guarded by the generation that the plan has read. A provider that another program changed since is
 * read again, and only what then still differs is written.
 *
 * @param present the providers from which the plan was made
 * @param report gets the new difference of such a provider; undefined if there is none any more
 * @throws Error that names the first provider that could not be written. What is under way by then is finished, and nothing else begun
 */
export async function carryOut(
  placement: Placement,
  file: FleetFile,
  plan: FleetPlan,
  present: readonly WholeProvider[],
  report: (name: string, step: ProviderStep | undefined) => void,
): Promise<Applied> {
  const uuids = new Map(present.map(({ name, uuid }) => [name, uuid]));
  const names = new Map(present.map(({ name, uuid }) => [uuid, name]));
  const wanted = new Map(file.providers.map((each) => [each.name, each]));
  const before = new Map(present.map((each) => [each.name, each]));
  const context: StepContext = {
    pool: file.pool,
    drained: drainedNames(file, before),
    uuidOf: (name) => uuids.get(name) ?? '',
    nameOf: (uuid) => names.get(uuid) ?? uuid,
  };
  const count = { made: 0, changed: 0, deleted: 0 };
  const at =
    (keys: FileKeys, name: string): Complaint =>
    (error) =>
      error instanceof ApiError ? file.mistake(keys, `${name}: ${error.message}`) : `${name}: ${messageOf(error)}`;
  await inTurn(plan.newClasses, (name) => at(keysOfClass(file, name), name), placement.resourceClasses.ensure);
  await inTurn(plan.newTraits, (name) => at(keysOfTrait(file, name), name), placement.traits.ensure);
  const complaintOfStep = ({ name }: ProviderStep) => at(wanted.get(name)?.keys ?? [], name);
  for (const wave of plan.waves) {
    await inTurn(wave, complaintOfStep, async ({ name }) => {
      const provider = wanted.get(name);
      if (provider === undefined) return;
      const { uuid, done } = await apply(placement, provider, before.get(name), context, report);
      uuids.set(name, uuid);
      if (done !== undefined) count[done]++;
    });
  }
  const kept = [...plan.kept];
  for (const wave of plan.deletions) {
    const gone = ({ name }: WholeProvider) => at([], `--prune: ${name}`);
    await inTurn(wave, gone, async ({ uuid, name }) => {
      const why = await prune(placement, uuid, file);
      if (why === undefined) count.deleted++;
      else kept.push({ name, uuid, why });
    });
  }
  return { ...count, kept };
}

/** Where a file names a resource class first. */
function keysOfClass({ providers }: FleetFile, name: string): FileKeys {
  const first = providers.find(({ inventories = {} }) => Object.hasOwn(inventories, name));
  return first === undefined ? [] : [...first.keys, 'inventories', name];
}

/** Where a file names a trait first. The mark of a pool is derived from its name. */
function keysOfTrait({ pool, providers }: FleetFile, name: string): FileKeys {
  if (pool !== undefined && name === markOfPool(pool)) return ['pool'];
  const first = providers.find(({ traits = [] }) => traits.includes(name));
  return first === undefined ? [] : [...first.keys, 'traits', first.traits?.indexOf(name) ?? 0];
}

/** Makes the message about an error. */
type Complaint = (error: unknown) => string;

/** Runs a call for each item, as `forEach`. @throws Error with the message about the item */
const inTurn = <Item>(
  items: readonly Item[],
  complaintOf: (item: Item) => Complaint,
  call: (item: Item) => Promise<unknown>,
): Promise<unknown> =>
  forEach(
    items,
    (item) =>
      call(item).catch((error: unknown) => {
        throw new Error(complaintOf(item)(error), { cause: error });
      }),
    providersAtOnce,
  );

/** Another program has changed the provider since it was read. */
class ChangedMeanwhile extends Error {
  override readonly name = 'ChangedMeanwhile';
}

/** Whether another program was faster: it changed, deleted or created the provider. */
const isChangedMeanwhile = (error: unknown): boolean =>
  error instanceof ChangedMeanwhile ||
  isConcurrentUpdate(error) ||
  isNotFound(error) ||
  (isConflict(error) && error.code === 'placement.duplicate_name');

/** Makes or changes a provider. @param read as the plan saw it */
function apply(
  placement: Placement,
  wanted: FileProvider,
  read: WholeProvider | undefined,
  context: StepContext,
  report: (name: string, step: ProviderStep | undefined) => void,
): Promise<{ readonly uuid: string; readonly done: 'made' | 'changed' | undefined }> {
  let isMade = false;
  return retryConflicts(
    async (attempt) => {
      const present = attempt === 1 ? read : await readByName(placement, wanted.name);
      const step = stepOf(wanted, present, context);
      if (attempt > 1) report(wanted.name, step);
      if (step === undefined) return { uuid: present?.uuid ?? '', done: isMade ? 'made' : undefined };
      const generation = await makeOrMove(placement, step, present);
      isMade ||= present === undefined;
      await writeParts(placement, step, generation);
      return { uuid: step.uuid, done: isMade ? 'made' : 'changed' };
    },
    { isConflict: isChangedMeanwhile },
  );
}

async function readByName(
  { providers, providerSummaries }: Placement,
  name: string,
): Promise<WholeProvider | undefined> {
  const [found] = await providers.list({ name });
  if (found === undefined) return undefined;
  const [whole] = await providerSummaries.page({ uuids: [found.uuid] });
  return whole;
}

/** Creates the provider, or sets its parent. @returns the generation that guards the later writes */
async function makeOrMove(
  { providers }: Placement,
  { uuid, name, generation, writes: { parentUuid } }: ProviderStep,
  present: WholeProvider | undefined,
): Promise<number> {
  if (generation === undefined || present === undefined) {
    return (await providers.create({ name, uuid, parent_provider_uuid: parentUuid ?? null })).generation;
  }
  if (parentUuid === undefined) return generation;
  // A move neither compares the generation nor raises it. The tag covers name and parent.
  const { etag, ...now } = await providers.show(uuid);
  if (now.name !== name || now.parent_provider_uuid !== present.parent_provider_uuid) {
    throw new ChangedMeanwhile(`${name} is being moved or renamed by another program.`);
  }
  await providers.update(uuid, { name, parent_provider_uuid: parentUuid }, { ifMatch: etag });
  return generation;
}

/** Traits come before inventories: a claim that is placed by inventories must see the traits that go with them. */
async function writeParts(placement: Placement, { uuid, writes }: ProviderStep, read: number): Promise<void> {
  let resource_provider_generation = read;
  const { traits, aggregates, inventories } = writes;
  if (traits !== undefined) {
    const written = await placement.providerTraits.set(uuid, { traits, resource_provider_generation });
    resource_provider_generation = written.resource_provider_generation;
  }
  if (aggregates !== undefined) {
    const written = await placement.aggregates.set(uuid, { aggregates, resource_provider_generation });
    resource_provider_generation = written.resource_provider_generation ?? resource_provider_generation;
  }
  if (inventories !== undefined) {
    await placement.inventories.set(uuid, { inventories, resource_provider_generation });
  }
}

/** Deletes a provider if it still belongs to the pool. @returns why it was not deleted */
async function prune(placement: Placement, uuid: string, { pool, providers }: FleetFile): Promise<string | undefined> {
  const attempt = async (): Promise<string | undefined> => {
    // The tag is read first: what it covers is then not older than what is judged.
    const { etag } = await placement.providers.show(uuid);
    const [present] = await placement.providerSummaries.page({ uuids: [uuid] });
    if (present === undefined) return undefined;
    if (pool === undefined || !present.traits.includes(markOfPool(pool))) return 'it has no mark of the pool any more';
    if (providers.some(({ name }) => name === present.name)) return 'it has a name that is in the file now';
    await placement.providers.delete(uuid, { ifMatch: etag });
    return undefined;
  };
  try {
    return await retryConflicts(attempt);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    // Allocations or children were added since.
    if (isConflict(error)) return error.detail;
    throw error;
  }
}

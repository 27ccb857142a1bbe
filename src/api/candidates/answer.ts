import type { Fleet } from '../../fleet/model/fleet.ts';
import { nameOf } from '../../fleet/model/names.ts';
import { cacheOf, type Inventory, jsonUuid, type Provider, treeOf } from '../../fleet/model/provider.ts';
import { capacity } from '../../placement/inventory.ts';
import { since } from '../../placement/microversions.ts';
import { roundsPerClockRead, type Turns } from '../../request/turns.ts';
import { type ChunkMaker, jsonWriter, separator } from '../../rest/json_body.ts';
import { exactNumber } from '../../rest/python_numbers.ts';
import { type Candidate, takenByProvider } from '../../search/choices.ts';
import type { CandidateRequest } from '../../search/request.ts';
import { Cache, remembering } from '../../text/cache.ts';
import { asciiJson } from '../../text/strings.ts';

/**
 * After how many candidates or trees, some 0.5 ms, the answer checks whether its turn is over. A pause costs more than the check: answers
 * that are written in the pause need other memory.
 */
const candidatesPerQuestion = 256;

/**
 * The answer also checks after this much text of large trees, in bytes, which takes up to 2 ms. Texts of small trees do not count.
 */
const [textPerQuestion, smallText] = [256 * 1024, 4 * 1024];

/**
 * Generates the JSON of the answer in chunks: the candidates as they are found, then the summaries of the providers
 * that they use. It is written as bytes and not as strings, since most of it is copied from what was written before.
 *
 * Between two chunks the fleet may change, if a snapshot of it is held (src/fleet/model/held_snapshots.ts).
 */
export function* candidatesJson(
  fleet: Fleet,
  request: CandidateRequest,
  candidates: Iterable<Candidate | undefined>,
  version: number,
  turns?: Turns,
): ChunkMaker {
  const json = jsonWriter();
  const names = { traits: fleet.traits, classes: fleet.classes };
  const textOfTree = treeSummaries(fleet, names);
  // From 1.29 on: the trees that candidates use, by their roots. In the first chunk each with its summaries, which are at hand
  // when its candidates are found; later they are not kept, since a slow client may leave them in memory for long.
  const roots = new Set<Provider>();
  const summaries: Buffer[] = [];
  let keepsSummaries = true;
  const providers = new Set<Provider>();
  let latest: Provider | undefined;
  /** The text of large trees since the last check, in bytes. Counting the text of all trees would take a twentieth of the time. */
  let ofLarge = 0;
  const noteTree = ({ root }: Provider): void => {
    if (root !== latest && !roots.has(root)) {
      roots.add(root);
      if (keepsSummaries) {
        const summary = textOfTree(root);
        summaries.push(summary);
        if (summary.length > smallText) ofLarge += summary.length;
      }
    }
    latest = root;
  };
  const note = version >= since.nestedCandidates ? noteTree : (provider: Provider) => providers.add(provider);
  const bytesOf = candidatePatterns(candidateForm(names, version), note);
  let skipped: number = separator.length;
  /** How many candidates were written, and how many of them when a result was noted last. */
  let written = 0;
  let noted = 0;
  json.text('{"allocation_requests": [');
  for (const candidate of candidates) {
    if (candidate === undefined) {
      if (written > noted) turns?.noteResult();
      noted = written;
      yield undefined;
      continue;
    }
    json.bytes(bytesOf(candidate), skipped);
    skipped = 0;
    written += 1;
    if (ofLarge > textPerQuestion || written % candidatesPerQuestion === 0) {
      ofLarge = 0;
      noted = written;
      turns?.noteResult();
      if (turns?.isOver(roundsPerClockRead)) yield undefined;
    }
    if (!json.isFull()) continue;
    yield json.take();
    keepsSummaries = false;
    summaries.length = 0;
  }
  json.text('], "provider_summaries": {');
  skipped = separator.length;
  written = 0;
  for (const root of roots) {
    const summary = summaries[written++] ?? textOfTree(root);
    json.bytes(summary, skipped);
    skipped = 0;
    if (summary.length > smallText) ofLarge += summary.length;
    if (ofLarge > textPerQuestion || written % candidatesPerQuestion === 0) {
      ofLarge = 0;
      if (turns?.isOver(roundsPerClockRead)) yield undefined;
    }
    if (json.isFull()) yield json.take();
  }
  for (const provider of providers) {
    json.text(separator.slice(skipped) + summaryText(names, provider, request, version));
    skipped = 0;
    written += 1;
    if (written % candidatesPerQuestion === 0 && turns?.isOver(roundsPerClockRead)) yield undefined;
    if (json.isFull()) yield json.take();
  }
  json.text('}}');
  yield json.take();
}

/** How candidates are written at a microversion. */
function candidateForm(names: Pick<Fleet, 'classes'>, version: number): CandidateForm {
  const takenOf = (candidate: Candidate) => takenTexts(names, candidate);
  // Up to 1.11 a list, in the form that PUT /allocations had then.
  if (version < since.allocationsByProvider) {
    return (candidate) => [
      '{"allocations": [',
      ...listed(takenOf(candidate), ([provider, resources]) => [
        `{"resources": {${resources}}, "resource_provider": {"uuid": "`,
        provider,
        '"}}',
      ]),
      ']}',
    ];
  }
  const allocations = (candidate: Candidate) =>
    listed(takenOf(candidate), ([provider, resources]) => ['"', provider, `": {"resources": {${resources}}}`]);
  if (version < since.mappings) return (candidate) => ['{"allocations": {', ...allocations(candidate), '}}'];
  return (candidate) => [
    '{"allocations": {',
    ...allocations(candidate),
    '}, "mappings": {',
    // Suffixes are letters, digits, dashes and underscores: nothing needs escaping.
    ...listed(candidate, ({ group, providers }) => [
      `"${group.suffix}": [`,
      ...listed([...new Set(providers)], (provider) => ['"', provider, '"']),
      ']',
    ]),
    '}}',
  ];
}

/** What a candidate takes of each provider, as members of a JSON object. */
const takenTexts = (
  { classes }: Pick<Fleet, 'classes'>,
  candidate: Candidate,
): readonly (readonly [Provider, string])[] =>
  Array.from(takenByProvider(candidate), ([provider, ofProvider]) => [
    provider,
    Array.from(ofProvider, ([classId, amount]) => `${asciiJson(nameOf(classes, classId))}: ${amount}`).join(', '),
  ]);

/** The pieces of all items, with a comma between one and the next. */
const listed = <Item>(
  items: readonly Item[],
  piecesOf: (item: Item) => readonly (string | Provider)[],
): readonly (string | Provider)[] =>
  items.flatMap((item, index) => (index === 0 ? piecesOf(item) : [', ', ...piecesOf(item)]));

/** The names of traits and resource classes in the snapshot of an answer. */
type NamesOfSnapshot = Pick<Fleet, 'traits' | 'classes'>;

/**
 * The summaries of a tree as members of a JSON object, with a separator before each, from 1.29 on. They depend only on
 * the tree, and are cached with it until something in the tree changes.
 *
 * @param names if these are no longer the names of the fleet, nothing is cached, as for a tree that was removed from the fleet
 */
function treeSummaries(fleet: Fleet, names: NamesOfSnapshot): (root: Provider) => Buffer {
  const textOf = summaryWriter(names);
  return (root) => {
    const hasNames = names.traits === fleet.traits && names.classes === fleet.classes;
    const cached = hasNames ? root.cache?.summary : undefined;
    if (cached !== undefined) return cached;
    const text = Buffer.from(treeOf(root).map(textOf).join(''), 'latin1');
    if (hasNames && fleet.byId.get(root.id) === root) cacheOf(root).summary = text;
    return text;
  };
}

/** Writes one of these members. Many hosts have equal inventories and traits, and so share the objects: each text is made once. */
function summaryWriter({ traits, classes }: NamesOfSnapshot): (provider: Provider) => string {
  const untilUsed = remembering(
    (fields: Inventory['fields']) =>
      `${asciiJson(nameOf(classes, fields.classId))}:{"capacity":${JSON.stringify(exactNumber(capacity(fields)))},"used":`,
  );
  const traitsText = remembering((ids: readonly number[]) => asciiJson(ids.map((id) => nameOf(traits, id))));
  return (provider) => {
    let resources = '';
    for (const { fields, used } of provider.inventories) {
      resources += `${resources === '' ? '' : ','}${untilUsed(fields)}${used}}`;
    }
    const parent = provider.parent === undefined ? 'null' : `"${jsonUuid(provider.parent)}"`;
    return (
      `, "${jsonUuid(provider)}": {"resources":{${resources}},"traits":${traitsText(provider.traitIds)},` +
      `"parent_provider_uuid":${parent},"root_provider_uuid":"${jsonUuid(provider.root)}"}`
    );
  };
}

/** The summary of a provider as a member of a JSON object, up to 1.28. */
function summaryText(names: NamesOfSnapshot, provider: Provider, request: CandidateRequest, version: number): string {
  const requested = new Set(request.groups.flatMap(({ resources }) => [...resources.keys()]));
  const resources: Record<string, { capacity: unknown; used: number }> = {};
  for (const inventory of provider.inventories) {
    const name = nameOf(names.classes, inventory.fields.classId);
    if (version < since.allResources && !requested.has(name)) continue;
    resources[name] = { capacity: exactNumber(capacity(inventory.fields)), used: inventory.used };
  }
  const traits = provider.traitIds.map((id) => nameOf(names.traits, id));
  return `"${jsonUuid(provider)}": ${asciiJson(version < since.candidateTraits ? { resources } : { resources, traits })}`;
}

/**
 * The text of candidates that distribute their groups among providers in the same way. They differ only by UUIDs, so
 * the text is cached, and for the next candidate the UUIDs that differ are overwritten.
 */
type Pattern = {
  /**
   * For each provider of each choice, in order: its number among the candidate's providers, in the order of first
   * mention.
   */
  readonly shape: readonly number[];
  /** The text of the latest candidate, with a separator before it. */
  readonly bytes: Buffer;
  /** What the text has for each provider of that candidate. */
  readonly shown: readonly SummarizedProvider[];
};

type SummarizedProvider = {
  /** Undefined in a new pattern, so that the provider of the first candidate is noted too. */
  uuid: string | undefined;
  readonly uuidLength: number;
  readonly uuidPositions: readonly number[];
  /** Whether the candidate takes an amount of the provider. */
  readonly isUsed: boolean;
};

/**
 * How many patterns are cached, each in 2 kB. There may be very many: six groups can be distributed among providers in
 * 203 ways.
 */
const keptPatterns = 1024;

/**
 * Writes the candidates of one request. With three isolated groups, of which one changes from candidate to candidate,
 * it takes a third of the time of joining the text for each candidate.
 *
 * @param note called with each provider of which a candidate takes an amount, at least once
 * @returns a function that writes a candidate as JSON, with a separator before it. The caller must copy the bytes
 *   before the next call.
 */
function candidatePatterns(
  form: CandidateForm,
  note: (provider: Provider) => void,
): (candidate: Candidate) => Uint8Array {
  const patterns = new Cache<number, Pattern>(keptPatterns);
  let latest: Pattern | undefined;
  /**
   * The providers of the present candidate, in the order of first mention. Providers of earlier candidates may follow.
   */
  const present: Provider[] = [];

  /**
   * Whether a candidate has this pattern. If so, its providers are in `present` afterwards. The loops are plain for
   * speed, since they run for every candidate.
   */
  const matches = ({ shape, shown }: Pattern, candidate: Candidate): boolean => {
    let mentions = 0;
    let known = 0;
    for (const { providers } of candidate) {
      for (let index = 0; index < providers.length; index++) {
        const provider = providers[index];
        const which = shape[mentions++];
        if (provider === undefined || which === undefined) return false;
        if (which < known) {
          if (present[which] !== provider) return false;
          continue;
        }
        for (let other = 0; other < known; other++) if (present[other] === provider) return false;
        if (shown[which]?.uuidLength !== jsonUuid(provider).length) return false;
        present[known++] = provider;
      }
    }
    return mentions === shape.length;
  };

  const patternOf = (candidate: Candidate): Pattern => {
    if (latest !== undefined && matches(latest, candidate)) return latest;
    const hash = shapeHash(candidate);
    const known = patterns.get(hash);
    if (known !== undefined && matches(known, candidate)) return known;
    const added = newPattern(form, candidate);
    patterns.set(hash, added);
    matches(added, candidate);
    return added;
  };

  return (candidate) => {
    latest = patternOf(candidate);
    const { bytes, shown } = latest;
    for (let which = 0; which < shown.length; which++) {
      const provider = present[which];
      const there = shown[which];
      if (provider === undefined || there === undefined) continue;
      const uuid = jsonUuid(provider);
      if (uuid === there.uuid) continue;
      if (there.isUsed) note(provider);
      there.uuid = uuid;
      for (const position of there.uuidPositions) bytes.write(uuid, position, 'latin1');
    }
    return bytes;
  };
}

/** A hash: all candidates of one pattern have the same hash, and two patterns mostly have different hashes. */
function shapeHash(candidate: Candidate): number {
  let hash = 0;
  for (const { providers } of candidate) {
    for (const provider of providers) {
      hash = (Math.imul(hash, 31) + firstMention(candidate, provider) + jsonUuid(provider).length) | 0;
    }
  }
  return hash;
}

function firstMention(candidate: Candidate, provider: Provider): number {
  let before = 0;
  for (const { providers } of candidate) {
    const index = providers.indexOf(provider);
    if (index !== -1) return before + index;
    before += providers.length;
  }
  return before;
}

/** A new pattern with the text of a candidate. */
function newPattern(form: CandidateForm, candidate: Candidate): Pattern {
  const mentions = candidate.flatMap(({ providers }) => providers);
  const present = [...new Set(mentions)];
  const used = new Set(candidate.flatMap(({ group, providers }) => (group.resources.length > 0 ? providers : [])));
  const positionsOf = new Map(present.map((provider): [Provider, number[]] => [provider, []]));
  let text: string = separator;
  for (const piece of form(candidate)) {
    if (typeof piece !== 'string') positionsOf.get(piece)?.push(text.length);
    text += typeof piece === 'string' ? piece : jsonUuid(piece);
  }
  return {
    shape: mentions.map((provider) => present.indexOf(provider)),
    bytes: Buffer.from(text, 'latin1'),
    shown: present.map((provider) => ({
      uuid: undefined,
      uuidLength: jsonUuid(provider).length,
      uuidPositions: positionsOf.get(provider) ?? [],
      isUsed: used.has(provider),
    })),
  };
}

/** How a candidate is written: pieces of ASCII text, and the providers whose UUIDs are inserted between the pieces. */
type CandidateForm = (candidate: Candidate) => readonly (string | Provider)[];

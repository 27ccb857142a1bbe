import { setImmediate as otherWork } from 'node:timers/promises';
import type { Database } from '../../db/engine/connect.ts';
import { readLimits } from '../../db/statements/limits.ts';
import type { Shape } from '../api/candidates/shapes.ts';
import { shownLimits } from '../api/limits.ts';
import type { CountingOptions } from '../claims/limits.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { nameOf } from '../fleet/model/names.ts';
import type { Inventory } from '../fleet/model/provider.ts';
import { ApiError } from '../request/errors.ts';
import { type Hold, inPiecesOfOneSnapshot, openTurns, type Pieces } from '../request/turns.ts';
import { countPlacements } from '../search/count/count.ts';

// Inventories

type CapacityFigure = {
  readonly name: string;
  readonly type: 'gauge' | 'untyped';
  readonly help: string;
  readonly of: (inventory: Inventory) => number;
};

/**
 * The names are those of the OpenStack exporter, so that its dashboards continue to work. `_used` is the exporter's
 * name, `_usage` the word of the API for the same. By Prometheus's rules a gauge must not have a name that ends in
 * `_total`, so that one has no type.
 */
const capacityFigures: readonly CapacityFigure[] = [
  { name: 'total', type: 'untyped', help: 'The total of an inventory.', of: ({ fields }) => fields.total },
  { name: 'reserved', type: 'gauge', help: 'What of an inventory is reserved.', of: ({ fields }) => fields.reserved },
  { name: 'used', type: 'gauge', help: 'What of an inventory is allocated.', of: ({ used }) => used },
  { name: 'usage', type: 'gauge', help: 'The same as openstack_placement_resource_used.', of: ({ used }) => used },
  {
    name: 'allocation_ratio',
    type: 'gauge',
    help: 'The overcommitment of an inventory.',
    of: ({ fields }) => fields.allocationRatio,
  },
];

/** How many series are made between two checks whether the turn is over. */
const seriesPerPiece = 500;

/**
 * The inventories of the first `providerLimit` providers as gauges in the text format of Prometheus, in parts. The text is
 * made directly from the fleet: 10,000 providers with 3 classes are 150,000 series, which a registry would copy and sort at
 * every scrape. Each figure is of a moment during the scrape; not all are of the same moment.
 */
export function* capacityText(fleet: Fleet, providerLimit: number): Pieces<readonly Buffer[]> {
  if (providerLimit === 0) return [];
  const providers = fleet.byId.list().slice(0, providerLimit > 0 ? providerLimit : undefined);
  const labelled: { readonly labels: string; readonly inventory: Inventory }[] = [];
  for (const [index, { name, inventories }] of providers.entries()) {
    if (index % seriesPerPiece === 0) yield;
    const host = escapeLabel(name);
    for (const inventory of inventories) {
      const resource = escapeLabel(nameOf(fleet.classes, inventory.fields.classId));
      labelled.push({ labels: `{hostname="${host}",resourcetype="${resource}"}`, inventory });
    }
  }
  const parts: Buffer[] = [];
  for (const { name, type, help, of } of capacityFigures) {
    const full = `openstack_placement_resource_${name}`;
    let lines = `# HELP ${full} ${help}\n# TYPE ${full} ${type}\n`;
    for (const [index, { labels, inventory }] of labelled.entries()) {
      lines += `${full}${labels} ${of(inventory)}\n`;
      if (index % seriesPerPiece !== seriesPerPiece - 1) continue;
      parts.push(Buffer.from(lines));
      lines = '';
      yield;
    }
    parts.push(Buffer.from(lines));
  }
  return parts;
}

/** Escapes a backslash, a quote and a line feed, as the text format requires. */
function escapeLabel(text: string): string {
  return text.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}

// Shapes

const shapeName = 'placement_shape_capacity';
const shapeHelp =
  'How many consumers of a shape can be claimed at the same time beside what is used now; at least as many, in rare cases more. ' +
  'Each shape is counted at a moment of its own.';
/** More than any deployment has room for. */
const most = 1_000_000;

/**
 * How many of each shape fit, as a gauge in the text format of Prometheus. Requests are answered meanwhile.
 *
 * @param options.hold holds the snapshot of the fleet
 * @param options.leftOut called with each shape that is left out, since it takes too much work or too much changes meanwhile
 */
export async function shapeCapacityText(
  fleet: Fleet,
  shapes: readonly Shape[],
  { hold, leftOut }: { readonly hold: Hold; readonly leftOut: (shape: string, error: ApiError) => void },
): Promise<string> {
  if (shapes.length === 0) return '';
  let text = `# HELP ${shapeName} ${shapeHelp}\n# TYPE ${shapeName} gauge\n`;
  for (const shape of shapes) {
    try {
      text += `${shapeName}{shape="${shape.name}"} ${await capacityFor(fleet, shape, hold)}\n`;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      leftOut(shape.name, error);
    }
    await otherWork();
  }
  return text;
}

/** How often a shape fits; 0 if its class or a trait does not exist yet. @throws ApiError 503 where it cannot be counted */
async function capacityFor(fleet: Fleet, { name, request }: Shape, hold: Hold): Promise<number> {
  const turns = openTurns();
  const tooWide = () => new ApiError(503, `The shape ${name} takes too much work to be counted.`);
  try {
    const work = countPlacements(fleet, request, { max: most, top: 0, turns });
    return (await inPiecesOfOneSnapshot(work, hold, turns, tooWide)).count;
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return 0;
    throw error;
  }
}

// Limits of projects

/** The largest number of projects with explicit limits that are reported. */
const mostProjects = 1_000;

const limitFigures = [
  {
    name: 'placement_limit',
    help: 'How much a project may have of a class, or how many consumers of a type.',
    of: 'limit',
  },
  { name: 'placement_limit_used', help: 'How much a project has of what placement_limit limits.', of: 'used' },
] as const;

/**
 * The limits of projects with values of their own as gauges in the text format of Prometheus, with the defaults that hold for them. Empty
 * while there is no limit.
 */
export async function limitsText(
  database: Pick<Database, 'kysely'>,
  { limits }: Pick<Fleet, 'limits'>,
  options: CountingOptions,
): Promise<string> {
  if (!limits.isCounting) return '';
  const read = await readLimits(database, { after: '', limit: mostProjects }, options.incompleteProject);
  const rows = read.projects.flatMap((each) => {
    const { project_id, resources, consumers } = shownLimits(each, read.defaults, options);
    const named = [
      ...Object.entries(resources),
      ...Object.entries(consumers).map(([type, shown]) => [`consumers ${type}`, shown] as const),
    ];
    return named.flatMap(([of, { limit, used }]) => (limit === null ? [] : [{ project: project_id, of, limit, used }]));
  });
  return limitFigures
    .map(({ name, help, of: figure }) => {
      const lines = rows.map(
        ({ project, of, ...row }) =>
          `${name}{project="${escapeLabel(project)}",of="${escapeLabel(of)}"} ${row[figure]}\n`,
      );
      return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join('')}`;
    })
    .join('');
}

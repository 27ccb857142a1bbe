import type { Group } from './grouping.ts';

/** Where the cells of a group are. The unit of all lengths is a cell; the first cell is below the heading. */
export type Block = {
  readonly group: Group;
  readonly x: number;
  readonly y: number;
  readonly columns: number;
  readonly rows: number;
  readonly headingHeight: number;
  /** The place of its first cell among all cells. */
  readonly first: number;
};

/** The places of all groups. At the scale `fit` (pixels for a cell) the whole layout is visible. */
export type Layout = {
  readonly blocks: readonly Block[];
  readonly width: number;
  readonly height: number;
  readonly fit: number;
  readonly cells: number;
};

const headingPx = 22;
const gapPx = 10;
/** The smallest width of a group: its heading needs room also if it has few members. */
const leastBlockPx = 118;
const largestFitPx = 104;
const smallestFitPx = 2;

/** The ratios of width to height that are tried for a group. The ratio with the largest scale is taken. */
const shapes = [0.7, 1, 1.4, 2, 2.8, 4];

/** Finds the largest scale at which all groups fit into an area, and places the groups in rows. */
export function layOut(groups: readonly Group[], widthPx: number, heightPx: number): Layout {
  const layouts = shapes.map((shape) => {
    let low = smallestFitPx;
    let high = largestFitPx;
    for (let round = 0; round < 14; round++) {
      const middle = (low + high) / 2;
      if (shelves(groups, widthPx, middle, shape).height * middle <= heightPx) low = middle;
      else high = middle;
    }
    return { shape, fit: low };
  });
  const { shape, fit } = layouts.reduce((best, each) => (each.fit > best.fit ? each : best));
  const cells = groups.reduce((sum, { trees }) => sum + trees.length, 0);
  return { ...shelves(groups, widthPx, fit, shape), fit, cells };
}

/** The height of the layout at a scale, in pixels. */
export const heightAt = (groups: readonly Group[], widthPx: number, scale: number): number =>
  shelves(groups, widthPx, scale, 2).height * scale;

function shelves(
  groups: readonly Group[],
  widthPx: number,
  scale: number,
  shape: number,
): Pick<Layout, 'blocks' | 'width' | 'height'> {
  const width = widthPx / scale;
  const gap = gapPx / scale;
  const isAlone = groups.length === 1 && groups[0]?.key === '';
  const headingHeight = isAlone ? 0 : headingPx / scale;
  const least = Math.ceil(leastBlockPx / scale);
  const blocks: Block[] = [];
  let x = 0;
  let y = 0;
  let shelfHeight = 0;
  let first = 0;
  for (const group of groups) {
    const count = group.trees.length;
    const wanted = isAlone ? Math.floor(width) : Math.max(least, Math.ceil(Math.sqrt(count * shape)));
    const columns = Math.max(1, Math.min(wanted, Math.floor(width)));
    const rows = Math.ceil(count / columns);
    if (x > 0 && x + columns > width) {
      x = 0;
      y += shelfHeight + gap;
      shelfHeight = 0;
    }
    blocks.push({ group, x, y, columns, rows, headingHeight, first });
    x += columns + gap;
    shelfHeight = Math.max(shelfHeight, headingHeight + rows);
    first += count;
  }
  return { blocks, width, height: y + shelfHeight };
}

/** The visible part of the layout: its upper left point, and the scale in pixels for a cell. */
export type Camera = { readonly x: number; readonly y: number; readonly scale: number };

/** The largest scale: a cell shows its classes as bars. */
const largestScale = 220;

/** Moves the camera so that it shows no area outside the layout. */
export function clamped({ x, y, scale }: Camera, layout: Layout, widthPx: number, heightPx: number): Camera {
  const size = Math.min(Math.max(scale, layout.fit), Math.max(largestScale, layout.fit));
  const bound = (value: number, whole: number, seen: number) => Math.min(Math.max(value, 0), Math.max(0, whole - seen));
  return { x: bound(x, layout.width, widthPx / size), y: bound(y, layout.height, heightPx / size), scale: size };
}

/** The camera after zooming by a factor. The given point of the canvas stays at its place. */
export function zoomed(
  { x, y, scale }: Camera,
  factor: number,
  atX: number,
  atY: number,
  layout: Layout,
  widthPx: number,
  heightPx: number,
): Camera {
  const size = Math.min(Math.max(scale * factor, layout.fit), Math.max(largestScale, layout.fit));
  return clamped(
    { x: x + atX / scale - atX / size, y: y + atY / scale - atY / size, scale: size },
    layout,
    widthPx,
    heightPx,
  );
}

/** The place in the layout of a cell. */
export function positionOf(layout: Layout, cell: number): { readonly x: number; readonly y: number } {
  const block = blockOf(layout, cell);
  if (block === undefined) return { x: 0, y: 0 };
  const place = cell - block.first;
  return { x: block.x + (place % block.columns), y: block.y + block.headingHeight + Math.floor(place / block.columns) };
}

/** The group that a cell is in. */
const blockOf = ({ blocks }: Layout, cell: number): Block | undefined => blocks.findLast(({ first }) => first <= cell);

/** The cell at a point of the layout; undefined where there is none. */
export function cellAt({ blocks }: Layout, x: number, y: number): number | undefined {
  for (const { group, first, columns, rows, headingHeight, ...block } of blocks) {
    const column = Math.floor(x - block.x);
    const row = Math.floor(y - block.y - headingHeight);
    if (column < 0 || column >= columns || row < 0 || row >= rows) continue;
    const place = row * columns + column;
    return place < group.trees.length ? first + place : undefined;
  }
  return undefined;
}

/** Arrow keys. */
export type Direction = 'left' | 'right' | 'up' | 'down';

/** The next cell in a direction; from the first or last row of a group the nearest one of the next group. */
export function neighbour(layout: Layout, cell: number, direction: Direction): number {
  if (direction === 'left') return Math.max(0, cell - 1);
  if (direction === 'right') return Math.min(layout.cells - 1, cell + 1);
  const at = positionOf(layout, cell);
  const block = blockOf(layout, cell);
  if (block === undefined) return cell;
  const step = direction === 'up' ? -1 : 1;
  const inGroup = cell + step * block.columns;
  if (inGroup >= block.first && inGroup < block.first + block.group.trees.length) return inGroup;
  let best: { readonly cell: number; readonly distance: number } | undefined;
  for (const other of layout.blocks) {
    const isBeyond = step < 0 ? other.y + other.rows <= block.y : other.y >= block.y + block.rows;
    if (!isBeyond) continue;
    const row = step < 0 ? other.rows - 1 : 0;
    const column = Math.min(Math.max(Math.round(at.x - other.x), 0), other.columns - 1);
    const place = Math.min(row * other.columns + column, other.group.trees.length - 1);
    const distance = Math.abs(other.x + column - at.x) + 3 * Math.abs(other.y - block.y);
    if (best === undefined || distance < best.distance) best = { cell: other.first + place, distance };
  }
  return best?.cell ?? cell;
}

import type { Group } from './grouping.ts';

/** The columns and rows of the cells of a group. */
type Part = {
  readonly group: Group;
  readonly columns: number;
  readonly rows: number;
  /** The index of its first cell among all cells. */
  readonly first: number;
};

/**
 * Which groups are side by side, and how many columns each has: the same at every zoom. At the scale `fit` (pixels
 * for a cell) all of it is visible, unless there are too many groups.
 */
export type Layout = {
  readonly shelves: readonly (readonly Part[])[];
  readonly fit: number;
  readonly cells: number;
  /** There is only one group, which has no heading. */
  readonly isAlone: boolean;
  /** There are so many groups that each group is drawn as one cell where its cells would be tiny. */
  readonly collapses: boolean;
};

/** Where a group is, in pixels. Its cells are below its heading. */
export type Block = Part & {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly headingPx: number;
};

/** Where all groups are at one scale, in pixels. */
export type Scene = {
  readonly scale: number;
  readonly blocks: readonly Block[];
  readonly width: number;
  readonly height: number;
  /** The cells would be tiny: each group is one cell, with its name inside. */
  readonly isCollapsed: boolean;
};

/** The visible part of a scene: its upper left point, and the scale, all in pixels. */
export type Camera = { readonly x: number; readonly y: number; readonly scale: number };

const headingPx = 22;
const gapPx = 10;
/** The smallest width of a group: its heading needs room also if it has few members. */
const leastBlockPx = 118;
/** From this number on groups are drawn as cells: with fewer groups, their tiny cells show more. */
const fewestCollapsed = 24;
/** In cells that are smaller nothing can be seen. */
const tinyPx = 4;
const largestFitPx = 104;
/** The smallest scale, where cells are shown, and where groups are cells: at a smaller one the grid is moved. */
const smallestFitPx = { cells: 2, groups: 0.8 };
/** The largest scale: a cell shows its classes as bars. */
const largestScale = 220;

/** The ratios of width to height that are tried for a group. The ratio with the largest scale is taken. */
const shapes = [0.7, 1, 1.4, 2, 2.8, 4];

/** Finds the largest scale at which all groups fit into an area, and arranges the groups in rows. */
export function layOut(groups: readonly Group[], widthPx: number, heightPx: number): Layout {
  const made = (shape: number, fit: number) => layoutOf(groups, widthPx, shape, fit);
  const collapses = groups.length >= fewestCollapsed;
  const layouts = shapes.map((shape) => {
    let low = collapses ? smallestFitPx.groups : smallestFitPx.cells;
    let high = largestFitPx;
    for (let round = 0; round < 14; round++) {
      const middle = (low + high) / 2;
      if (sceneAt(made(shape, middle), middle).height <= heightPx) low = middle;
      else high = middle;
    }
    return made(shape, low);
  });
  return layouts.reduce((best, each) => (each.fit > best.fit ? each : best));
}

/** The height of all groups at a scale, in pixels. */
export const heightAt = (groups: readonly Group[], widthPx: number, scale: number): number =>
  sceneAt(layoutOf(groups, widthPx, 2, scale), scale).height;

/** Below this scale the groups get smaller as a picture does; above it headings and gaps keep their size. */
const unitOf = (scale: number, collapses: boolean): number => (collapses ? Math.max(scale, tinyPx) : scale);

const widthOf = (columns: number, unit: number, isAlone: boolean): number =>
  isAlone ? columns * unit : Math.max(leastBlockPx, columns * unit);

/** Arranges the groups in rows, so that they have a width at a scale. */
function layoutOf(groups: readonly Group[], widthPx: number, shape: number, scale: number): Layout {
  const isAlone = groups.length === 1 && groups[0]?.key === '';
  const collapses = groups.length >= fewestCollapsed;
  const unit = unitOf(scale, collapses);
  const width = (widthPx * unit) / scale;
  const most = Math.max(1, Math.floor(width / unit));
  const shelves: Part[][] = [];
  let x = Number.POSITIVE_INFINITY;
  let cells = 0;
  for (const group of groups) {
    const count = group.trees.length;
    const columns = isAlone ? most : Math.min(most, Math.max(1, Math.ceil(Math.sqrt(count * shape))));
    const wide = widthOf(columns, unit, isAlone);
    if (x + wide > width) {
      shelves.push([]);
      x = 0;
    }
    shelves.at(-1)?.push({ group, columns, rows: Math.ceil(count / columns), first: cells });
    x += wide + gapPx;
    cells += count;
  }
  return { shelves, fit: scale, cells, isAlone, collapses };
}

/** Where all groups are at a scale. */
export function sceneAt({ shelves, isAlone, collapses }: Layout, scale: number): Scene {
  const unit = unitOf(scale, collapses);
  const shrunk = scale / unit;
  const heading = isAlone ? 0 : headingPx;
  const blocks: Block[] = [];
  let width = 0;
  let y = 0;
  for (const shelf of shelves) {
    let x = 0;
    let shelfHeight = 0;
    for (const part of shelf) {
      const wide = widthOf(part.columns, unit, isAlone);
      const high = heading + part.rows * unit;
      blocks.push({
        ...part,
        x: x * shrunk,
        y: y * shrunk,
        width: wide * shrunk,
        height: high * shrunk,
        headingPx: heading * shrunk,
      });
      x += wide + gapPx;
      shelfHeight = Math.max(shelfHeight, high);
    }
    width = Math.max(width, x - gapPx);
    y += shelfHeight + gapPx;
  }
  return {
    scale,
    blocks,
    width: width * shrunk,
    height: Math.max(0, y - gapPx) * shrunk,
    isCollapsed: shrunk < 1,
  };
}

/** A scale that the layout has: from all of it to a few large cells. */
export const boundScale = ({ fit }: Layout, scale: number): number =>
  Math.min(Math.max(scale, fit), Math.max(largestScale, fit));

/** Moves the camera so that it shows no area outside its scene. */
export function clamped({ x, y, scale }: Camera, scene: Scene, widthPx: number, heightPx: number): Camera {
  const bound = (value: number, whole: number, seen: number) => Math.min(Math.max(value, 0), Math.max(0, whole - seen));
  return { x: bound(x, scene.width, widthPx), y: bound(y, scene.height, heightPx), scale };
}

/** The camera after a change of the scene. The content at a point of the canvas stays there. */
export function zoomed(camera: Camera, from: Scene, to: Scene, atX: number, atY: number): Camera {
  const at = moved({ x: camera.x + atX, y: camera.y + atY }, from, to);
  return { x: at.x - atX, y: at.y - atY, scale: to.scale };
}

type Point = { readonly x: number; readonly y: number };

/** The point of a scene which shows the same as a point of another one: headings and gaps are not zoomed, cells are. */
function moved({ x, y }: Point, from: Scene, to: Scene): Point {
  const shelf = from.blocks.findLast((block) => block.y <= y)?.y ?? 0;
  const index = Math.max(
    0,
    from.blocks.findLastIndex((block) => block.y === shelf && block.x <= x),
  );
  const [before, after] = [from.blocks[index], to.blocks[index]];
  if (before === undefined || after === undefined) return { x, y };
  const along = (at: number, size: number, cells: number, newSize: number, newCells: number): number => {
    if (from.isCollapsed || to.isCollapsed) return size === 0 ? 0 : (at / size) * newSize;
    return at <= 0 ? at : at <= cells ? (at / cells) * newCells : newCells + at - cells;
  };
  const { columns, rows } = before;
  const [top, newTop] = from.isCollapsed || to.isCollapsed ? [0, 0] : [before.headingPx, after.headingPx];
  return {
    x: after.x + along(x - before.x, before.width, columns * from.scale, after.width, columns * to.scale),
    y: after.y + newTop + along(y - before.y - top, before.height, rows * from.scale, after.height, rows * to.scale),
  };
}

/** Where a cell is, in pixels. */
export type CellBox = { readonly x: number; readonly y: number; readonly width: number; readonly height: number };

/** Where a cell of a scene is: in a collapsed scene where its group is. */
export function boxOf(scene: Scene, cell: number): CellBox {
  const block = blockOf(scene, cell);
  if (block === undefined) return { x: 0, y: 0, width: 0, height: 0 };
  const { x, y, width, height, headingPx, columns, first } = block;
  if (scene.isCollapsed) return { x, y, width, height };
  const index = cell - first;
  return {
    x: x + (index % columns) * scene.scale,
    y: y + headingPx + Math.floor(index / columns) * scene.scale,
    width: scene.scale,
    height: scene.scale,
  };
}

/** The group that a cell is in. */
export const blockOf = ({ blocks }: Pick<Scene, 'blocks'>, cell: number): Block | undefined =>
  blocks.findLast(({ first, rows }) => first <= cell && rows > 0);

/** The cell at a point of the scene; in a collapsed scene the first cell of the group. Undefined where there is none. */
export function cellAt({ blocks, scale, isCollapsed }: Scene, x: number, y: number): number | undefined {
  for (const { group, first, columns, rows, headingPx, ...block } of blocks) {
    const [right, down] = [x - block.x, y - block.y];
    if (isCollapsed) {
      if (right >= 0 && right < block.width && down >= 0 && down < block.height) return first;
      continue;
    }
    const column = Math.floor(right / scale);
    const row = Math.floor((down - headingPx) / scale);
    if (column < 0 || column >= columns || row < 0 || row >= rows) continue;
    const index = row * columns + column;
    return index < group.trees.length ? first + index : undefined;
  }
  return undefined;
}

/** Arrow keys. */
export type Direction = 'left' | 'right' | 'up' | 'down';

/**
 * The next cell in a direction; from the first or last row of a group the nearest one of the next group. In a collapsed
 * scene the first cell of the next group.
 */
export function neighbour(scene: Scene, cells: number, cell: number, direction: Direction): number {
  const block = blockOf(scene, cell);
  if (block === undefined) return cell;
  if (direction === 'left' || direction === 'right') {
    const step = direction === 'left' ? -1 : 1;
    if (!scene.isCollapsed) return Math.min(Math.max(cell + step, 0), cells - 1);
    return scene.blocks[scene.blocks.indexOf(block) + step]?.first ?? block.first;
  }
  const at = boxOf(scene, cell);
  const step = direction === 'up' ? -1 : 1;
  const inGroup = cell + step * block.columns;
  if (!scene.isCollapsed && inGroup >= block.first && inGroup < block.first + block.group.trees.length) return inGroup;
  let best: { readonly cell: number; readonly distance: number } | undefined;
  for (const other of scene.blocks) {
    const isBeyond = step < 0 ? other.y + other.height <= block.y : other.y >= block.y + block.height;
    if (!isBeyond) continue;
    const column = scene.isCollapsed
      ? 0
      : Math.min(Math.max(Math.round((at.x - other.x) / scene.scale), 0), other.columns - 1);
    const row = step < 0 ? other.rows - 1 : 0;
    const index = scene.isCollapsed ? 0 : Math.min(row * other.columns + column, other.group.trees.length - 1);
    const distance = Math.abs(other.x + column * scene.scale - at.x) + 3 * Math.abs(other.y - block.y);
    if (best === undefined || distance < best.distance) best = { cell: other.first + index, distance };
  }
  return best?.cell ?? cell;
}

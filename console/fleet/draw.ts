import { numberText, percentText, visible } from '../text.tsx';
import type { Block, Camera, Layout } from './layout.ts';
import { type Palette, stepCount, stepOf } from './palette.ts';
import { fullness, type Measure, type Tree } from './trees.ts';

/** What is drawn. */
export type Picture = {
  readonly layout: Layout;
  readonly camera: Camera;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly palette: Palette;
  readonly resourceClass: string;
  readonly measure: Measure;
  /** In lower case. Cells that do not match are faint; an empty text matches all cells. */
  readonly search: string;
  readonly selected: number | undefined;
  readonly hovered: number | undefined;
};

/** The smallest size of a cell with its name, and of one with its classes as bars. */
const namePx = 44;
const barsPx = 104;

const over = stepCount;
const none = stepCount + 1;
/**
 * The rectangles to fill, by colour: x, y, width and height one after the other. The arrays are reused for each frame.
 */
const rectangles: readonly number[][] = Array.from({ length: 2 * (stepCount + 2) }, () => []);

/** Draws the part of the grid that the camera sees. */
export function draw(context: CanvasRenderingContext2D, picture: Picture): void {
  const { layout, camera, widthPx, heightPx, palette } = picture;
  context.fillStyle = palette.background;
  context.fillRect(0, 0, widthPx, heightPx);
  for (const list of rectangles) list.length = 0;
  const seen = layout.blocks.filter(
    (block) =>
      (block.y + block.headingHeight + block.rows - camera.y) * camera.scale > 0 &&
      (block.y - camera.y) * camera.scale < heightPx &&
      (block.x + block.columns - camera.x) * camera.scale > 0 &&
      (block.x - camera.x) * camera.scale < widthPx,
  );
  for (const block of seen) collect(block, picture);
  for (const [colour, list] of rectangles.entries()) {
    if (list.length === 0) continue;
    const isFaint = colour >= stepCount + 2;
    context.globalAlpha = isFaint ? 0.16 : 1;
    context.fillStyle = colourOf(colour % (stepCount + 2), palette);
    for (let at = 0; at < list.length; at += 4) {
      context.fillRect(list[at] ?? 0, list[at + 1] ?? 0, list[at + 2] ?? 0, list[at + 3] ?? 0);
    }
  }
  context.globalAlpha = 1;
  for (const block of seen) {
    drawHeading(context, block, picture);
    if (camera.scale >= namePx) drawTexts(context, block, picture);
  }
  for (const [cell, width] of [
    [picture.hovered, 1.5],
    [picture.selected, 3],
  ] as const) {
    if (cell !== undefined) outline(context, cell, width, picture);
  }
}

const colourOf = (colour: number, palette: Palette): string =>
  colour === over ? palette.over : colour === none ? palette.none : (palette.steps[colour] ?? palette.none);

const inkOf = (colour: number | 'over' | 'none', palette: Palette): string =>
  colour === 'over' ? palette.overInk : colour === 'none' ? palette.noneInk : (palette.inks[colour] ?? palette.ink);

/** The visible rows and columns of a block. */
function range({ x, y, columns, rows, headingHeight }: Block, { camera, widthPx, heightPx }: Picture) {
  const top = y + headingHeight;
  return {
    top,
    firstRow: Math.max(0, Math.floor(camera.y - top)),
    lastRow: Math.min(rows - 1, Math.floor(camera.y + heightPx / camera.scale - top)),
    firstColumn: Math.max(0, Math.floor(camera.x - x)),
    lastColumn: Math.min(columns - 1, Math.floor(camera.x + widthPx / camera.scale - x)),
  };
}

const gapOf = (scale: number): number =>
  scale >= 24 ? Math.round(scale * 0.06) : scale >= 5 ? 1 : scale >= 3 ? 0.5 : 0;

function collect(block: Block, picture: Picture): void {
  const { camera, resourceClass, measure, search } = picture;
  const { scale } = camera;
  const gap = gapOf(scale);
  const { top, firstRow, lastRow, firstColumn, lastColumn } = range(block, picture);
  const { trees } = block.group;
  for (let row = firstRow; row <= lastRow; row++) {
    const y = Math.round((top + row - camera.y) * scale);
    const height = Math.round((top + row + 1 - camera.y) * scale) - y - gap;
    for (let column = firstColumn; column <= lastColumn; column++) {
      const tree = trees[row * block.columns + column];
      if (tree === undefined) break;
      const x = Math.round((block.x + column - camera.x) * scale);
      const width = Math.round((block.x + column + 1 - camera.x) * scale) - x - gap;
      const step = stepOf(fullness(tree.amounts.get(resourceClass), measure));
      const colour = step === 'over' ? over : step === 'none' ? none : step;
      const isFaint = search !== '' && !tree.searched.includes(search);
      rectangles[colour + (isFaint ? stepCount + 2 : 0)]?.push(x, y, width, height);
    }
  }
}

function drawHeading(context: CanvasRenderingContext2D, block: Block, picture: Picture): void {
  const { camera, widthPx, palette, resourceClass, measure } = picture;
  if (block.headingHeight === 0) return;
  const left = Math.max(0, (block.x - camera.x) * camera.scale);
  const right = Math.min(widthPx, (block.x + block.columns - camera.x) * camera.scale);
  const baseline = (block.y + block.headingHeight - camera.y) * camera.scale - 7;
  const sums = block.group.sums.get(resourceClass);
  const percent = sums === undefined ? '' : percentText(fullness(sums, measure));
  context.font = '600 12px system-ui, sans-serif';
  context.textAlign = 'right';
  context.fillStyle = palette.faint;
  const percentWidth = percent === '' ? 0 : context.measureText(percent).width + 8;
  context.fillText(percent, right - 2, baseline);
  context.textAlign = 'left';
  context.fillStyle = palette.ink;
  const label = shortened(context, block.group.label, right - left - percentWidth);
  context.fillText(label, left, baseline);
  const amounts =
    sums === undefined ? '' : `${block.group.trees.length} · ${numberText(sums.used)} of ${numberText(sums.capacity)}`;
  const labelWidth = context.measureText(label).width + 10;
  context.font = '12px system-ui, sans-serif';
  if (context.measureText(amounts).width + labelWidth + percentWidth > right - left) return;
  context.fillStyle = palette.faint;
  context.fillText(amounts, left + labelWidth, baseline);
}

function drawTexts(context: CanvasRenderingContext2D, block: Block, picture: Picture): void {
  const { camera, palette, resourceClass, measure, search } = picture;
  const { scale } = camera;
  const { top, firstRow, lastRow, firstColumn, lastColumn } = range(block, picture);
  const { trees } = block.group;
  const room = scale - gapOf(scale) - 10;
  const size = Math.min(13, Math.max(10, scale / 8));
  context.textAlign = 'left';
  for (let row = firstRow; row <= lastRow; row++) {
    for (let column = firstColumn; column <= lastColumn; column++) {
      const tree = trees[row * block.columns + column];
      if (tree === undefined) break;
      if (search !== '' && !tree.searched.includes(search)) continue;
      const part = fullness(tree.amounts.get(resourceClass), measure);
      const ink = inkOf(stepOf(part), palette);
      const x = (block.x + column - camera.x) * scale + 5;
      const y = (top + row - camera.y) * scale + size + 3;
      context.fillStyle = ink;
      context.font = `600 ${size}px system-ui, sans-serif`;
      context.fillText(nameFor(context, tree.name, room), x, y);
      context.font = `${size}px system-ui, sans-serif`;
      if (scale < barsPx) context.fillText(percentText(part), x, y + size + 3);
      else
        drawBars(context, tree, {
          x,
          y: y + 6,
          room,
          bottom: (top + row + 1 - camera.y) * scale - gapOf(scale) - 4,
          ink,
        });
    }
  }
}

/** The whole name, or its end if there is little room: the ends of names differ. It mostly begins at a separator. */
function nameFor(context: CanvasRenderingContext2D, name: string, room: number): string {
  let text = visible(name);
  const fits = () => context.measureText(text).width <= room;
  while (!fits() && /[-_.:/]./.test(text)) text = text.replace(/^.*?[-_.:/](?=.)/, '');
  while (!fits() && text.length > 1) text = text.slice(1);
  return text;
}

function shortened(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  const perCharacter = context.measureText(text).width / Math.max(1, text.length);
  const kept = Math.floor(room / perCharacter) - 1;
  return kept < 2 ? '' : `${text.slice(0, kept)}…`;
}

type Place = {
  readonly x: number;
  readonly y: number;
  readonly room: number;
  readonly bottom: number;
  readonly ink: string;
};

/** The classes of a tree as bars, each with its name. */
function drawBars(context: CanvasRenderingContext2D, tree: Tree, { x, y, room, bottom, ink }: Place): void {
  context.font = '11px system-ui, sans-serif';
  let at = y;
  for (const [name, amounts] of tree.amounts) {
    if (at + 21 > bottom) break;
    const part = fullness(amounts, 'capacity');
    context.fillStyle = ink;
    const percent = percentText(part);
    const width = context.measureText(percent).width;
    context.fillText(shortened(context, name, room - width - 6), x, at + 11);
    context.textAlign = 'right';
    context.fillText(percent, x + room, at + 11);
    context.textAlign = 'left';
    context.globalAlpha = 0.25;
    context.fillRect(x, at + 14, room, 4);
    context.globalAlpha = 0.9;
    if (part > 0) context.fillRect(x, at + 14, room * Math.min(1, part), 4);
    context.globalAlpha = 1;
    at += 22;
  }
}

function outline(
  context: CanvasRenderingContext2D,
  cell: number,
  width: number,
  { layout, camera, palette }: Picture,
): void {
  const block = layout.blocks.findLast(({ first }) => first <= cell);
  if (block === undefined) return;
  const place = cell - block.first;
  const { scale } = camera;
  const x = (block.x + (place % block.columns) - camera.x) * scale;
  const y = (block.y + block.headingHeight + Math.floor(place / block.columns) - camera.y) * scale;
  const size = Math.max(6, scale - gapOf(scale));
  context.strokeStyle = palette.background;
  context.lineWidth = width + 2;
  context.strokeRect(x - 1, y - 1, size + 2, size + 2);
  context.strokeStyle = palette.accent;
  context.lineWidth = width;
  context.strokeRect(x - 1, y - 1, size + 2, size + 2);
}

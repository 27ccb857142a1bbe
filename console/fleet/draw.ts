import { amountText, percentText, visible } from '../text.ts';
import { type Block, boxOf, type Camera, type Scene } from './layout.ts';
import { type Palette, stepCount, stepOf } from './palette.ts';
import { fullness, type Measure, type Tree } from './trees.ts';

/** What is drawn. */
export type Picture = {
  readonly scene: Scene;
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

/** Draws the part of the grid that the camera sees. @returns how many cells it has drawn */
export function draw(context: CanvasRenderingContext2D, picture: Picture): number {
  const { scene, camera, widthPx, heightPx, palette } = picture;
  context.fillStyle = palette.background;
  context.fillRect(0, 0, widthPx, heightPx);
  for (const list of rectangles) list.length = 0;
  const seen = scene.blocks.filter(
    ({ x, y, width, height }) =>
      y + height > camera.y && y < camera.y + heightPx && x + width > camera.x && x < camera.x + widthPx,
  );
  for (const block of seen) {
    if (scene.isCollapsed) collectGroup(block, picture);
    else collect(block, picture);
  }
  let cells = 0;
  for (const [colour, list] of rectangles.entries()) {
    if (list.length === 0) continue;
    cells += list.length / 4;
    const isFaint = colour >= stepCount + 2;
    context.globalAlpha = isFaint ? 0.16 : 1;
    context.fillStyle = colourOf(colour % (stepCount + 2), palette);
    const isHollow = colour % (stepCount + 2) === none;
    for (let at = 0; at < list.length; at += 4) {
      const fill = isHollow ? fillFrame : fillWhole;
      fill(context, list[at] ?? 0, list[at + 1] ?? 0, list[at + 2] ?? 0, list[at + 3] ?? 0);
    }
  }
  context.globalAlpha = 1;
  for (const block of seen) {
    if (scene.isCollapsed) drawGroup(context, block, picture);
    else drawHeading(context, block, picture);
    if (scene.scale >= namePx) drawTexts(context, block, picture);
  }
  for (const [cell, width] of [
    [picture.hovered, 1.5],
    [picture.selected, 3],
  ] as const) {
    if (cell !== undefined) outline(context, cell, width, picture);
  }
  return cells;
}

type Fill = (context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number) => void;

const fillWhole: Fill = (context, x, y, width, height) => context.fillRect(x, y, width, height);

/** What has nothing of the class is hollow, and an empty one is filled. A small one is a dot. */
const fillFrame: Fill = (context, x, y, width, height) => {
  if (Math.min(width, height) < 20) {
    const size = Math.max(1, Math.round(Math.min(width, height) / 4));
    context.fillRect(Math.floor(x + (width - size) / 2), Math.floor(y + (height - size) / 2), size, size);
    return;
  }
  context.fillRect(x, y, width, 1);
  context.fillRect(x, y + height - 1, width, 1);
  context.fillRect(x, y + 1, 1, height - 2);
  context.fillRect(x + width - 1, y + 1, 1, height - 2);
};

const colourOf = (colour: number, palette: Palette): string =>
  colour === over ? palette.over : colour === none ? palette.none : (palette.steps[colour] ?? palette.none);

const inkOf = (colour: number | 'over' | 'none', palette: Palette): string =>
  colour === 'over' ? palette.overInk : colour === 'none' ? palette.noneInk : (palette.inks[colour] ?? palette.ink);

/** The visible rows and columns of a block, and the upper left point of its first cell. */
function range({ x, y, columns, rows, headingPx }: Block, { scene: { scale }, camera, widthPx, heightPx }: Picture) {
  const left = x - camera.x;
  const top = y + headingPx - camera.y;
  return {
    left,
    top,
    firstRow: Math.max(0, Math.floor(-top / scale)),
    lastRow: Math.min(rows - 1, Math.floor((heightPx - top) / scale)),
    firstColumn: Math.max(0, Math.floor(-left / scale)),
    lastColumn: Math.min(columns - 1, Math.floor((widthPx - left) / scale)),
  };
}

const gapOf = (scale: number): number =>
  scale >= 24 ? Math.round(scale * 0.06) : scale >= 5 ? 1 : scale >= 3 ? 0.5 : 0;

/** The list for rectangles of a fullness. */
function listFor(part: number, isFaint: boolean): number[] | undefined {
  const step = stepOf(part);
  const colour = step === 'over' ? over : step === 'none' ? none : step;
  return rectangles[colour + (isFaint ? stepCount + 2 : 0)];
}

function collect(block: Block, picture: Picture): void {
  const { scene, resourceClass, measure, search } = picture;
  const { scale } = scene;
  const gap = gapOf(scale);
  const { left, top, firstRow, lastRow, firstColumn, lastColumn } = range(block, picture);
  const { trees } = block.group;
  for (let row = firstRow; row <= lastRow; row++) {
    const y = Math.round(top + row * scale);
    const height = Math.round(top + (row + 1) * scale) - y - gap;
    for (let column = firstColumn; column <= lastColumn; column++) {
      const tree = trees[row * block.columns + column];
      if (tree === undefined) break;
      const x = Math.round(left + column * scale);
      const width = Math.round(left + (column + 1) * scale) - x - gap;
      const isFaint = search !== '' && !tree.searched.includes(search);
      listFor(fullness(tree.amounts.get(resourceClass), measure), isFaint)?.push(x, y, width, height);
    }
  }
}

/** A group as one cell. */
function collectGroup(
  { x, y, width, height, group }: Block,
  { camera, resourceClass, measure, search }: Picture,
): void {
  const left = Math.round(x - camera.x);
  const top = Math.round(y - camera.y);
  const isFaint = search !== '' && !group.trees.some(({ searched }) => searched.includes(search));
  const wide = Math.max(1, Math.round(x + width - camera.x) - left);
  const high = Math.max(1, Math.round(y + height - camera.y) - top);
  listFor(fullness(group.sums.get(resourceClass), measure), isFaint)?.push(left, top, wide, high);
}

/** The name of a group inside its cell, and how full it is where there is room for both. */
function drawGroup(context: CanvasRenderingContext2D, block: Block, picture: Picture): void {
  const { x, y, width, height, group } = block;
  const { camera, palette, resourceClass, measure, search } = picture;
  if (height < 11 || width < 24) return;
  if (search !== '' && !group.trees.some(({ searched }) => searched.includes(search))) return;
  const part = fullness(group.sums.get(resourceClass), measure);
  const percent = percentText(part);
  const room = width - 8;
  const most = Math.min(12, height - 4);
  const setFont = (size: number) => {
    context.font = `600 ${size}px system-ui, sans-serif`;
  };
  const widthAt = (size: number, text: string): number => {
    setFont(size);
    return context.measureText(text).width;
  };
  const whole = `${group.label} ${percent}`;
  const size = [12, 11, 10, 9].find((each) => each <= most && widthAt(each, whole) <= room) ?? Math.max(9, most);
  const percentWidth = widthAt(size, percent) + 4;
  const hasBoth = room > percentWidth + 18;
  const baseline = y - camera.y + height / 2 + size * 0.36;
  context.fillStyle = inkOf(stepOf(part), palette);
  context.textAlign = 'left';
  context.fillText(nameFor(context, group.label, hasBoth ? room - percentWidth : room), x - camera.x + 4, baseline);
  if (!hasBoth) return;
  context.textAlign = 'right';
  context.fillText(percent, x - camera.x + width - 4, baseline);
  context.textAlign = 'left';
}

function drawHeading(context: CanvasRenderingContext2D, block: Block, picture: Picture): void {
  const { camera, widthPx, palette, resourceClass, measure } = picture;
  if (block.headingPx === 0) return;
  const left = Math.max(0, block.x - camera.x);
  const right = Math.min(widthPx, block.x + block.width - camera.x);
  const baseline = block.y + block.headingPx - camera.y - 7;
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
    sums === undefined
      ? ''
      : `${block.group.trees.length} · ${amountText(resourceClass, sums.used)} of ${amountText(resourceClass, sums.capacity)}`;
  const labelWidth = context.measureText(label).width + 10;
  context.font = '12px system-ui, sans-serif';
  if (context.measureText(amounts).width + labelWidth + percentWidth > right - left) return;
  context.fillStyle = palette.faint;
  context.fillText(amounts, left + labelWidth, baseline);
}

function drawTexts(context: CanvasRenderingContext2D, block: Block, picture: Picture): void {
  const { scene, palette, resourceClass, measure, search } = picture;
  const { scale } = scene;
  const { left, top, firstRow, lastRow, firstColumn, lastColumn } = range(block, picture);
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
      const x = left + column * scale + 5;
      const y = top + row * scale + size + 3;
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
          bottom: top + (row + 1) * scale - gapOf(scale) - 4,
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
  if (!fits()) text = text.replace(/^\D+(?=\d)/, '');
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
  { scene, camera, palette }: Picture,
): void {
  const box = boxOf(scene, cell);
  const gap = scene.isCollapsed ? 0 : gapOf(scene.scale);
  const place = [
    box.x - camera.x - 1,
    box.y - camera.y - 1,
    Math.max(6, box.width - gap) + 2,
    Math.max(6, box.height - gap) + 2,
  ] as const;
  context.strokeStyle = palette.background;
  context.lineWidth = width + 2;
  context.strokeRect(...place);
  context.strokeStyle = palette.accent;
  context.lineWidth = width;
  context.strokeRect(...place);
}

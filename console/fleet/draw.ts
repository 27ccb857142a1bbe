import { percentText, visible } from '../text.ts';
import type { CellStyle } from './cell_style.ts';
import type { Group } from './grouping.ts';
import { type Block, boxOf, type Camera, type Scene } from './layout.ts';
import { codeOf, coloursOf, type Palette, shadeCount, shadeOf } from './palette.ts';
import { fullness, type Tree } from './trees.ts';

/** What is drawn. */
export type Picture = {
  readonly scene: Scene;
  readonly camera: Camera;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly palette: Palette;
  readonly cellStyle: CellStyle;
  readonly codes: Codes;
  readonly selected: number | undefined;
  readonly hovered: number | undefined;
};

/** How cells are drawn: the number of a shade (palette.ts), and `shadeCount` more where a cell is faint since a search does not find it. */
export type Codes = {
  /** By the index of the cell. */
  readonly ofCells: Uint8Array;
  readonly ofGroups: ReadonlyMap<Group, number>;
};

/**
 * The codes by which all cells are drawn. They are computed once for the data, and not for each frame.
 *
 * @param search in lower case; an empty text finds all
 */
export function codesOf(groups: readonly Group[], cellStyle: CellStyle, search: string): Codes {
  const isFound = ({ searched }: Tree): boolean => search === '' || searched.includes(search);
  const codeFor = (shade: ReturnType<CellStyle['shadeOf']>, found: boolean) => codeOf(shade) + (found ? 0 : shadeCount);
  const codes = groups.flatMap(({ trees }) => trees.map((tree) => codeFor(cellStyle.shadeOf(tree), isFound(tree))));
  return {
    ofCells: Uint8Array.from(codes),
    ofGroups: new Map(
      groups.map((group) => [group, codeFor(cellStyle.shadeOfGroup(group), group.trees.some(isFound))]),
    ),
  };
}

/** The sizes of the texts of headings and bars. */
const headingTextPx = 12;
const barTextPx = 11;

type Weight = 'bold' | 'plain';

const fontOf = (size: number, weight: Weight): string =>
  `${weight === 'bold' ? '600 ' : ''}${size}px system-ui, sans-serif`;

const measuredPx = 100;
const mostMeasured = 20_000;
const measuring = document.createElement('canvas').getContext('2d');
const widths = { bold: new Map<string, number>(), plain: new Map<string, number>() };

/** The width of a text in pixels. Each text is measured once, and not for each frame and size. */
function widthOf(text: string, size: number, weight: Weight): number {
  const known = widths[weight];
  let width = known.get(text);
  if (width === undefined) {
    if (measuring === null) return 0;
    measuring.font = fontOf(measuredPx, weight);
    width = measuring.measureText(text).width / measuredPx;
    if (known.size >= mostMeasured) known.clear();
    known.set(text, width);
  }
  return width * size;
}

/** The smallest size of a cell with its name, and of one with its classes as bars. */
const namePx = 44;
const barsPx = 104;

const hollow = codeOf('none');
const striped = codeOf('drained');
/**
 * The rectangles to fill, by code: x, y, width and height one after the other. The arrays are reused for each frame.
 */
const rectangles: readonly number[][] = Array.from({ length: 2 * shadeCount }, () => []);

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
  for (const [code, list] of rectangles.entries()) {
    if (list.length === 0) continue;
    cells += list.length / 4;
    const shade = code % shadeCount;
    context.globalAlpha = isFaint(code) ? 0.16 : 1;
    context.fillStyle = shade === striped ? stripesOf(context, palette) : coloursOf(shadeOf(shade), palette).fill;
    // All cells are alike, although some are a pixel smaller; groups have different sizes.
    const isSmall = scene.isCollapsed ? undefined : scene.scale - gapOf(scene.scale) < framePx;
    for (let at = 0; at < list.length; at += 4) {
      const [x, y, width, height] = [list[at] ?? 0, list[at + 1] ?? 0, list[at + 2] ?? 0, list[at + 3] ?? 0];
      const isDot = isSmall ?? Math.min(width, height) < framePx;
      const fill = shade !== hollow ? fillWhole : isDot ? fillDot : fillFrame;
      fill(context, x, y, width, height);
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

/** What has nothing of the class is hollow, and an empty one is filled. */
const fillFrame: Fill = (context, x, y, width, height) => {
  context.fillRect(x, y, width, 1);
  context.fillRect(x, y + height - 1, width, 1);
  context.fillRect(x, y + 1, 1, height - 2);
  context.fillRect(x + width - 1, y + 1, 1, height - 2);
};

/** Where cells are small, a dot. */
const fillDot: Fill = (context, x, y, width, height) => {
  const size = Math.max(1, Math.round(Math.min(width, height) / 4));
  context.fillRect(Math.floor(x + (width - size) / 2), Math.floor(y + (height - size) / 2), size, size);
};

/** Cells of this size have room for a frame. */
const framePx = 20;

const isFaint = (code: number): boolean => code >= shadeCount;

const inkOf = (code: number, palette: Palette): string => coloursOf(shadeOf(code % shadeCount), palette).ink;

const stripePx = 8;
const stripes = new Map<Palette, CanvasPattern | null>();

/** The stripes of a drained tree, in the colours of a palette. */
function stripesOf(context: CanvasRenderingContext2D, palette: Palette): CanvasPattern | string {
  let pattern = stripes.get(palette);
  if (pattern === undefined) {
    const tile = document.createElement('canvas');
    tile.width = stripePx;
    tile.height = stripePx;
    const on = tile.getContext('2d');
    if (on !== null) {
      on.fillStyle = palette.drained;
      on.fillRect(0, 0, stripePx, stripePx);
      on.strokeStyle = palette.stripe;
      on.lineWidth = 2;
      on.beginPath();
      // The same line in three tiles, so that it continues at the corners.
      for (const shift of [-stripePx, 0, stripePx]) {
        on.moveTo(shift - 1, stripePx + 1);
        on.lineTo(shift + stripePx + 1, -1);
      }
      on.stroke();
    }
    pattern = on === null ? null : context.createPattern(tile, 'repeat');
    stripes.set(palette, pattern);
  }
  return pattern ?? palette.drained;
}

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

function collect(block: Block, picture: Picture): void {
  const { scene, codes } = picture;
  const { scale } = scene;
  const gap = gapOf(scale);
  const { left, top, firstRow, lastRow, firstColumn, lastColumn } = range(block, picture);
  const count = block.group.trees.length;
  for (let row = firstRow; row <= lastRow; row++) {
    const y = Math.round(top + row * scale);
    const height = Math.round(top + (row + 1) * scale) - y - gap;
    for (let column = firstColumn; column <= lastColumn; column++) {
      const index = row * block.columns + column;
      if (index >= count) break;
      const x = Math.round(left + column * scale);
      const width = Math.round(left + (column + 1) * scale) - x - gap;
      rectangles[codes.ofCells[block.first + index] ?? hollow]?.push(x, y, width, height);
    }
  }
}

/** A group as one cell. */
function collectGroup({ x, y, width, height, group }: Block, { camera, codes }: Picture): void {
  const left = Math.round(x - camera.x);
  const top = Math.round(y - camera.y);
  const wide = Math.max(1, Math.round(x + width - camera.x) - left);
  const high = Math.max(1, Math.round(y + height - camera.y) - top);
  rectangles[codes.ofGroups.get(group) ?? hollow]?.push(left, top, wide, high);
}

/** The name of a group inside its cell, and what it shows where there is room for both. */
function drawGroup(context: CanvasRenderingContext2D, block: Block, picture: Picture): void {
  const { x, y, width, height, group } = block;
  const { camera, palette, cellStyle, codes } = picture;
  const code = codes.ofGroups.get(group) ?? hollow;
  if (height < 11 || width < 24 || isFaint(code)) return;
  const short = cellStyle.textOfGroup(group);
  const room = width - 8;
  const most = Math.min(12, height - 4);
  const whole = `${group.label} ${short}`;
  const size =
    [12, 11, 10, 9].find((each) => each <= most && widthOf(whole, each, 'bold') <= room) ?? Math.max(9, most);
  const shortWidth = widthOf(short, size, 'bold') + 4;
  const hasBoth = room > shortWidth + 18;
  const baseline = y - camera.y + height / 2 + size * 0.36;
  context.fillStyle = inkOf(code, palette);
  context.font = fontOf(size, 'bold');
  context.textAlign = 'left';
  context.fillText(nameFor(group.label, size, hasBoth ? room - shortWidth : room), x - camera.x + 4, baseline);
  if (!hasBoth) return;
  context.textAlign = 'right';
  context.fillText(short, x - camera.x + width - 4, baseline);
  context.textAlign = 'left';
}

function drawHeading(context: CanvasRenderingContext2D, block: Block, picture: Picture): void {
  const { camera, widthPx, palette, cellStyle } = picture;
  if (block.headingPx === 0) return;
  const left = Math.max(0, block.x - camera.x);
  const right = Math.min(widthPx, block.x + block.width - camera.x);
  const baseline = block.y + block.headingPx - camera.y - 7;
  const short = cellStyle.textOfGroup(block.group);
  context.font = fontOf(headingTextPx, 'bold');
  context.textAlign = 'right';
  context.fillStyle = palette.faint;
  const shortWidth = short === '' ? 0 : widthOf(short, headingTextPx, 'bold') + 8;
  context.fillText(short, right - 2, baseline);
  context.textAlign = 'left';
  context.fillStyle = palette.ink;
  const label = shortened(block.group.label, headingTextPx, 'bold', right - left - shortWidth);
  context.fillText(label, left, baseline);
  const detail = cellStyle.detailOfGroup(block.group);
  const labelWidth = widthOf(label, headingTextPx, 'bold') + 10;
  context.font = fontOf(headingTextPx, 'plain');
  if (widthOf(detail, headingTextPx, 'plain') + labelWidth + shortWidth > right - left) return;
  context.fillStyle = palette.faint;
  context.fillText(detail, left + labelWidth, baseline);
}

function drawTexts(context: CanvasRenderingContext2D, block: Block, picture: Picture): void {
  const { scene, palette, cellStyle, codes } = picture;
  const { scale } = scene;
  const { left, top, firstRow, lastRow, firstColumn, lastColumn } = range(block, picture);
  const { trees } = block.group;
  const room = scale - gapOf(scale) - 10;
  const size = Math.min(13, Math.max(10, scale / 8));
  context.textAlign = 'left';
  for (let row = firstRow; row <= lastRow; row++) {
    for (let column = firstColumn; column <= lastColumn; column++) {
      const index = row * block.columns + column;
      const tree = trees[index];
      if (tree === undefined) break;
      const code = codes.ofCells[block.first + index] ?? hollow;
      if (isFaint(code)) continue;
      const ink = inkOf(code, palette);
      const x = left + column * scale + 5;
      const y = top + row * scale + size + 3;
      context.fillStyle = ink;
      context.font = fontOf(size, 'bold');
      context.fillText(nameFor(tree.name, size, room), x, y);
      context.font = fontOf(size, 'plain');
      context.fillText(shortened(cellStyle.textOf(tree), size, 'plain', room), x, y + size + 3);
      // A drained tree has no capacity, so it has no bar.
      if (scale >= barsPx && tree.drain !== 'drained')
        drawBars(context, tree, {
          x,
          y: y + size + 9,
          room,
          bottom: top + (row + 1) * scale - gapOf(scale) - 4,
          ink,
        });
    }
  }
}

/** The whole name, or its end if there is little room: the ends of names differ. It mostly begins at a separator. */
function nameFor(name: string, size: number, room: number): string {
  let text = visible(name);
  const fits = () => widthOf(text, size, 'bold') <= room;
  while (!fits() && /[-_.:/]./.test(text)) text = text.replace(/^.*?[-_.:/](?=.)/, '');
  if (!fits()) text = text.replace(/^\D+(?=\d)/, '');
  while (!fits() && text.length > 1) text = text.slice(1);
  return text;
}

function shortened(text: string, size: number, weight: Weight, room: number): string {
  const width = widthOf(text, size, weight);
  if (width <= room) return text;
  const kept = Math.floor((room * text.length) / width) - 1;
  return kept < 2 ? '' : `${text.slice(0, kept)}…`;
}

type BarsArea = {
  readonly x: number;
  readonly y: number;
  readonly room: number;
  readonly bottom: number;
  readonly ink: string;
};

/** The classes of a tree as bars, each with its name. */
function drawBars(context: CanvasRenderingContext2D, tree: Tree, { x, y, room, bottom, ink }: BarsArea): void {
  context.font = fontOf(barTextPx, 'plain');
  let at = y;
  for (const [name, amounts] of tree.amounts) {
    if (at + 21 > bottom) break;
    const part = fullness(amounts, 'capacity');
    context.fillStyle = ink;
    const percent = percentText(part);
    const width = widthOf(percent, barTextPx, 'plain');
    context.fillText(shortened(name, barTextPx, 'plain', room - width - 6), x, at + 11);
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
  const rectangle = [
    box.x - camera.x - 1,
    box.y - camera.y - 1,
    Math.max(6, box.width - gap) + 2,
    Math.max(6, box.height - gap) + 2,
  ] as const;
  context.strokeStyle = palette.background;
  context.lineWidth = width + 2;
  context.strokeRect(...rectangle);
  context.strokeStyle = palette.accent;
  context.lineWidth = width;
  context.strokeRect(...rectangle);
}

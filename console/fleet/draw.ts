import { percentText, visible } from '../text.ts';
import type { Group } from './grouping.ts';
import { type Block, boxOf, type Camera, type Scene } from './layout.ts';
import type { Look } from './look.ts';
import { codeOf, coloursOf, type Palette, shadeCount, shadeOf } from './palette.ts';
import { fullness, type Tree } from './trees.ts';

/** What is drawn. */
export type Picture = {
  readonly scene: Scene;
  readonly camera: Camera;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly palette: Palette;
  readonly look: Look;
  readonly codes: Codes;
  readonly selected: number | undefined;
  readonly hovered: number | undefined;
};

/** How cells are drawn: the number of a shade (palette.ts), and `shadeCount` more where a cell is faint since a search does not find it. */
export type Codes = {
  /** By the place of the cell. */
  readonly ofCells: Uint8Array;
  readonly ofGroups: ReadonlyMap<Group, number>;
};

/** Finds how all cells are drawn. It is done once for what is shown, and not for each frame. @param search in lower case; an empty text finds all */
export function codesOf(groups: readonly Group[], look: Look, search: string): Codes {
  const isFound = ({ searched }: Tree): boolean => search === '' || searched.includes(search);
  const codeFor = (shade: ReturnType<Look['shadeOf']>, found: boolean) => codeOf(shade) + (found ? 0 : shadeCount);
  const codes = groups.flatMap(({ trees }) => trees.map((tree) => codeFor(look.shadeOf(tree), isFound(tree))));
  return {
    ofCells: Uint8Array.from(codes),
    ofGroups: new Map(groups.map((group) => [group, codeFor(look.shadeOfGroup(group), group.trees.some(isFound))])),
  };
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
    const fill = shade === hollow ? fillFrame : fillWhole;
    for (let at = 0; at < list.length; at += 4) {
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

const isFaint = (code: number): boolean => code >= shadeCount;

const inkOf = (code: number, palette: Palette): string => coloursOf(shadeOf(code % shadeCount), palette).ink;

const stripePx = 8;
const stripes = new Map<Palette, CanvasPattern | null>();

/** The stripes of what is drained, of the colours of a palette. */
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
      // The same line in three tiles, so that it goes on at the corners.
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
      const place = row * block.columns + column;
      if (place >= count) break;
      const x = Math.round(left + column * scale);
      const width = Math.round(left + (column + 1) * scale) - x - gap;
      rectangles[codes.ofCells[block.first + place] ?? hollow]?.push(x, y, width, height);
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
  const { camera, palette, look, codes } = picture;
  const code = codes.ofGroups.get(group) ?? hollow;
  if (height < 11 || width < 24 || isFaint(code)) return;
  const short = look.textOfGroup(group);
  const room = width - 8;
  const most = Math.min(12, height - 4);
  const setFont = (size: number) => {
    context.font = `600 ${size}px system-ui, sans-serif`;
  };
  const widthAt = (size: number, text: string): number => {
    setFont(size);
    return context.measureText(text).width;
  };
  const whole = `${group.label} ${short}`;
  const size = [12, 11, 10, 9].find((each) => each <= most && widthAt(each, whole) <= room) ?? Math.max(9, most);
  const shortWidth = widthAt(size, short) + 4;
  const hasBoth = room > shortWidth + 18;
  const baseline = y - camera.y + height / 2 + size * 0.36;
  context.fillStyle = inkOf(code, palette);
  context.textAlign = 'left';
  context.fillText(nameFor(context, group.label, hasBoth ? room - shortWidth : room), x - camera.x + 4, baseline);
  if (!hasBoth) return;
  context.textAlign = 'right';
  context.fillText(short, x - camera.x + width - 4, baseline);
  context.textAlign = 'left';
}

function drawHeading(context: CanvasRenderingContext2D, block: Block, picture: Picture): void {
  const { camera, widthPx, palette, look } = picture;
  if (block.headingPx === 0) return;
  const left = Math.max(0, block.x - camera.x);
  const right = Math.min(widthPx, block.x + block.width - camera.x);
  const baseline = block.y + block.headingPx - camera.y - 7;
  const short = look.textOfGroup(block.group);
  context.font = '600 12px system-ui, sans-serif';
  context.textAlign = 'right';
  context.fillStyle = palette.faint;
  const shortWidth = short === '' ? 0 : context.measureText(short).width + 8;
  context.fillText(short, right - 2, baseline);
  context.textAlign = 'left';
  context.fillStyle = palette.ink;
  const label = shortened(context, block.group.label, right - left - shortWidth);
  context.fillText(label, left, baseline);
  const detail = look.detailOfGroup(block.group);
  const labelWidth = context.measureText(label).width + 10;
  context.font = '12px system-ui, sans-serif';
  if (context.measureText(detail).width + labelWidth + shortWidth > right - left) return;
  context.fillStyle = palette.faint;
  context.fillText(detail, left + labelWidth, baseline);
}

function drawTexts(context: CanvasRenderingContext2D, block: Block, picture: Picture): void {
  const { scene, palette, look, codes } = picture;
  const { scale } = scene;
  const { left, top, firstRow, lastRow, firstColumn, lastColumn } = range(block, picture);
  const { trees } = block.group;
  const room = scale - gapOf(scale) - 10;
  const size = Math.min(13, Math.max(10, scale / 8));
  context.textAlign = 'left';
  for (let row = firstRow; row <= lastRow; row++) {
    for (let column = firstColumn; column <= lastColumn; column++) {
      const place = row * block.columns + column;
      const tree = trees[place];
      if (tree === undefined) break;
      const code = codes.ofCells[block.first + place] ?? hollow;
      if (isFaint(code)) continue;
      const ink = inkOf(code, palette);
      const x = left + column * scale + 5;
      const y = top + row * scale + size + 3;
      context.fillStyle = ink;
      context.font = `600 ${size}px system-ui, sans-serif`;
      context.fillText(nameFor(context, tree.name, room), x, y);
      context.font = `${size}px system-ui, sans-serif`;
      context.fillText(shortened(context, look.textOf(tree), room), x, y + size + 3);
      // What is drained has no capacity of which a bar could be a part.
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

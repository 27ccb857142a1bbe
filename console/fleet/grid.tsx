import type { Ref } from 'preact';
import { useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useStore } from '../store.ts';
import { visible } from '../text.ts';
import type { CellStyle } from './cell_style.ts';
import { codesOf, draw } from './draw.ts';
import type { Group } from './grouping.ts';
import {
  blockOf,
  boundScale,
  boxOf,
  type Camera,
  cellAt,
  clamped,
  type Direction,
  heightAt,
  layOut,
  neighbour,
  type Scene,
  sceneAt,
  zoomed,
} from './layout.ts';
import { currentPalette } from './palette.ts';
import { onGestures, type Point } from './pointing.ts';
import type { Tree } from './trees.ts';

/** The actions of the buttons next to the grid. */
export type GridControl = {
  zoom(factor: number): void;
  showAll(): void;
  /** Selects a tree, and moves the camera to it. */
  show(uuid: string): void;
};

/** What a cell shows: a tree, or with `isWhole` its whole group. */
export type GridCell = { readonly tree: Tree; readonly group: Group; readonly isWhole: boolean };

type Props = {
  readonly groups: readonly Group[];
  readonly cellStyle: CellStyle;
  readonly search: string;
  readonly selected: string | undefined;
  readonly control: Ref<GridControl>;
  /** A cell is a tree, or a whole group where its trees would be tiny. */
  readonly onSelect: (cell: GridCell | undefined) => void;
  readonly onHover: (cell: GridCell | undefined) => void;
  readonly onOpen: (tree: Tree) => void;
};

const directions: Readonly<Record<string, Direction>> = {
  ArrowLeft: 'left',
  ArrowRight: 'right',
  ArrowUp: 'up',
  ArrowDown: 'down',
};

/** The zoom factor of a key or button. */
const zoomStep = 1.4;

/** The sizes of a cell in a narrow window: the largest of which all have room, or else the smallest. */
const narrowCellsPx = [110, 92, 76, 64, 54, 46, 30, 14];

function gridCellOf(scene: Scene, cell: number): GridCell | undefined {
  const block = blockOf(scene, cell);
  const tree = block?.group.trees[cell - block.first];
  return block === undefined || tree === undefined
    ? undefined
    : { tree, group: block.group, isWhole: scene.isCollapsed };
}

/** All trees as cells on a canvas: it is zoomed by wheel, pinching and keys, and moved by dragging. */
export function Grid(props: Props) {
  const { groups, control } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const across = useRef<HTMLDivElement>(null);
  const down = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const palette = useStore(currentPalette);
  const layout = useMemo(
    () => layOut(groups, Math.max(1, size.width), Math.max(1, size.height)),
    [groups, size.width, size.height],
  );
  const codes = useMemo(() => codesOf(groups, props.cellStyle, props.search), [groups, props.cellStyle, props.search]);
  const view = useRef({
    camera: { x: 0, y: 0, scale: layout.fit } as Camera,
    scene: sceneAt(layout, layout.fit),
    codes,
    isWhole: true,
    frame: 0,
    cell: undefined as number | undefined,
    hovered: undefined as number | undefined,
  });
  const latest = useRef({ props, layout, size, palette });
  latest.current = { props, layout, size, palette };

  const redraw = () => {
    const now = view.current;
    if (now.frame !== 0) return;
    now.frame = requestAnimationFrame(() => {
      now.frame = 0;
      const { props, size, palette } = latest.current;
      const context = canvas.current?.getContext('2d', { alpha: false });
      if (!context || size.width === 0) return;
      context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
      const drawn = draw(context, {
        scene: now.scene,
        camera: now.camera,
        widthPx: size.width,
        heightPx: size.height,
        palette,
        cellStyle: props.cellStyle,
        codes: now.codes,
        selected: now.cell,
        hovered: now.hovered,
      });
      if (canvas.current) canvas.current.dataset.drawn = String(drawn);
      showPosition();
    });
  };

  /** The scroll bars of the grid show which part of it is visible. */
  const showPosition = () => {
    const { scene, camera } = view.current;
    const { size } = latest.current;
    for (const [bar, whole, seen, from] of [
      [across.current, scene.width, size.width, camera.x],
      [down.current, scene.height, size.height, camera.y],
    ] as const) {
      if (bar === null) continue;
      bar.hidden = whole <= seen + 1;
      bar.style.setProperty('--part', `${(seen / whole) * 100}%`);
      bar.style.setProperty('--from', `${(from / whole) * 100}%`);
    }
  };
  const setCamera = (camera: Camera) => {
    const { layout, size } = latest.current;
    const now = view.current;
    if (now.scene.scale !== camera.scale) now.scene = sceneAt(layout, camera.scale);
    now.camera = clamped(camera, now.scene, size.width, size.height);
    now.isWhole = camera.scale <= layout.fit * 1.001;
    // While the whole grid is visible, one finger scrolls the page.
    const isAllSeen = now.scene.height <= size.height + 1 && now.scene.width <= size.width + 1;
    if (canvas.current) canvas.current.style.touchAction = isAllSeen ? 'pan-y' : 'none';
    redraw();
  };
  const zoomAt = (factor: number, x: number, y: number) => {
    const { layout } = latest.current;
    const { camera, scene } = view.current;
    const next = sceneAt(layout, boundScale(layout, camera.scale * factor));
    view.current.scene = next;
    setCamera(zoomed(camera, scene, next, x, y));
    // A group that was one cell is now several, or the other way round.
    const { cell } = view.current;
    if (cell !== undefined && next.isCollapsed !== scene.isCollapsed) select(cell);
  };
  const select = (cell: number | undefined) => {
    view.current.cell = cell;
    latest.current.props.onSelect(cell === undefined ? undefined : gridCellOf(view.current.scene, cell));
    redraw();
  };
  /** Moves the camera so that a cell is seen. */
  const bringIntoView = (cell: number) => {
    const { size } = latest.current;
    const { camera, scene } = view.current;
    const at = boxOf(scene, cell);
    const x = at.x < camera.x ? at.x : Math.max(camera.x, at.x + at.width - size.width);
    const y = at.y < camera.y ? at.y : Math.max(camera.y, at.y + at.height - size.height);
    setCamera({ ...camera, x, y });
  };
  /** Zooms so that a group fills the grid. */
  const showGroup = (cell: number) => {
    const { layout, size } = latest.current;
    const block = blockOf(view.current.scene, cell);
    if (block === undefined) return;
    const scale = boundScale(
      layout,
      Math.max(4, Math.min(size.width / block.columns, (size.height - 40) / Math.max(1, block.rows))),
    );
    view.current.scene = sceneAt(layout, scale);
    const at = blockOf(view.current.scene, cell);
    if (at !== undefined) setCamera({ x: at.x, y: at.y, scale });
    select(cell);
  };
  /** The fixed point when keys zoom: the selected cell, or the middle. */
  const zoomByKey = (factor: number) => {
    const { size } = latest.current;
    const { cell, camera, scene } = view.current;
    if (cell === undefined) return zoomAt(factor, size.width / 2, size.height / 2);
    const at = boxOf(scene, cell);
    zoomAt(factor, at.x + at.width / 2 - camera.x, at.y + at.height / 2 - camera.y);
    bringIntoView(cell);
  };
  /** Opens a tree; a group that is one cell is zoomed. */
  const open = (cell: number) => {
    const shown = gridCellOf(view.current.scene, cell);
    if (shown?.isWhole) showGroup(cell);
    else if (shown !== undefined) latest.current.props.onOpen(shown.tree);
  };
  const showAll = () => setCamera({ x: 0, y: 0, scale: latest.current.layout.fit });

  useImperativeHandle(control, () => ({
    zoom: zoomByKey,
    showAll,
    show: (uuid) => {
      const { layout, size } = latest.current;
      const cell = cellOf(view.current.scene, uuid);
      if (cell === undefined) return;
      const scale = boundScale(layout, Math.max(view.current.camera.scale, 64));
      view.current.scene = sceneAt(layout, scale);
      const at = boxOf(view.current.scene, cell);
      setCamera({ scale, x: at.x + at.width / 2 - size.width / 2, y: at.y + at.height / 2 - size.height / 2 });
      select(cell);
    },
  }));

  // In a narrow window the page scrolls, so the canvas may be higher than the window.
  useEffect(() => {
    const around = canvas.current?.parentElement;
    if (!around || size.width === 0) return;
    // Few hosts have room for their names.
    const heights = narrowCellsPx.map((scale) => heightAt(groups, size.width, scale));
    const wanted =
      heights.find((height) => height <= 0.6 * innerHeight) ?? Math.min(heights.at(-1) ?? 0, 3 * innerHeight);
    around.style.minHeight = matchMedia('(max-width: 860px)').matches ? `${Math.round(wanted) + 30}px` : '';
  }, [groups, size.width]);

  // The canvas has one pixel for each pixel of the screen.
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = element;
      element.width = Math.round(width * devicePixelRatio);
      element.height = Math.round(height * devicePixelRatio);
      setSize({ width, height });
      redraw();
    });
    observer.observe(element);
    const around = element.parentElement;
    return () => {
      observer.disconnect();
      // The table that comes instead may be lower.
      if (around) around.style.minHeight = '';
    };
  }, []);

  // A camera that showed the whole grid still does so after a change; any other camera stays where it is. Before the next key: it must
  // find the cell of the provider that the text names.
  useLayoutEffect(() => {
    const now = view.current;
    const scale = now.isWhole ? layout.fit : boundScale(layout, now.camera.scale);
    // Together with the scene, whose cells they are of.
    now.codes = codes;
    now.scene = sceneAt(layout, scale);
    if (now.isWhole) showAll();
    else setCamera({ ...now.camera, scale });
    const { selected } = latest.current.props;
    if (selected === undefined) now.cell = undefined;
    else if (now.cell === undefined || gridCellOf(now.scene, now.cell)?.tree.uuid !== selected) {
      now.cell = cellOf(now.scene, selected);
    }
    redraw();
  }, [layout, codes, props.selected]);
  useEffect(redraw);

  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const cellOn = ({ x, y }: Point): number | undefined => {
      const { camera, scene } = view.current;
      return cellAt(scene, camera.x + x, camera.y + y);
    };
    const shownBy = (cell: number | undefined) =>
      cell === undefined ? undefined : gridCellOf(view.current.scene, cell);
    const stop = onGestures(element, {
      zoom: (factor, { x, y }) => zoomAt(factor, x, y),
      drag: ({ x, y }) => {
        const { camera } = view.current;
        setCamera({ ...camera, x: camera.x - x, y: camera.y - y });
      },
      click: (at) => select(cellOn(at)),
      doubleClick: (at) => {
        const cell = cellOn(at);
        if (cell !== undefined) open(cell);
      },
      hover: (at) => {
        const cell = at === undefined ? undefined : cellOn(at);
        if (view.current.hovered === cell) return;
        view.current.hovered = cell;
        latest.current.props.onHover(shownBy(cell));
        redraw();
      },
    });
    return () => {
      stop();
      cancelAnimationFrame(view.current.frame);
      view.current.frame = 0;
    };
  }, []);

  const moveTo = ({ x, y }: { readonly x?: number; readonly y?: number }) => {
    const { camera, scene } = view.current;
    const { size } = latest.current;
    setCamera({
      scale: camera.scale,
      x: x === undefined ? camera.x : x * scene.width - size.width / 2,
      y: y === undefined ? camera.y : y * scene.height - size.height / 2,
    });
  };
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { layout } = latest.current;
    const { cell, scene } = view.current;
    const direction = directions[event.key];
    if (direction !== undefined && layout.cells > 0) {
      const next = cell === undefined ? 0 : neighbour(scene, layout.cells, cell, direction);
      select(next);
      bringIntoView(next);
    } else if (event.key === '+' || event.key === '=') zoomByKey(zoomStep);
    else if (event.key === '-') zoomByKey(1 / zoomStep);
    else if (event.key === '0') showAll();
    else if (event.key === 'Home' && layout.cells > 0) {
      select(0);
      bringIntoView(0);
    } else if (event.key === 'End' && layout.cells > 0) {
      const last = scene.isCollapsed ? (scene.blocks.at(-1)?.first ?? 0) : layout.cells - 1;
      select(last);
      bringIntoView(last);
    } else if (event.key === 'Escape') select(undefined);
    else if (event.key === 'Enter' && cell !== undefined) open(cell);
    else return;
    event.preventDefault();
  };

  return (
    <>
      {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: it takes keys, as an application does */}
      <canvas
        ref={canvas}
        class="grid"
        tabIndex={0}
        role="application"
        aria-roledescription="grid of providers"
        aria-label={`${layout.cells} providers in ${groups.length} groups, coloured by ${visible(props.cellStyle.what)}. The table has the same in text.`}
        aria-describedby="grid-keys"
        data-cells={layout.cells}
        onKeyDown={key}
      />
      <Position bar={across} kind="across" moveTo={(part) => moveTo({ x: part })} />
      <Position bar={down} kind="down" moveTo={(part) => moveTo({ y: part })} />
    </>
  );
}

/** A bar that shows which part of the grid is seen; dragging it moves the grid. The arrow keys do the same. */
function Position({
  bar,
  kind,
  moveTo,
}: {
  readonly bar: Ref<HTMLDivElement>;
  readonly kind: 'across' | 'down';
  /** The position of the middle, as a part of the whole. */
  readonly moveTo: (part: number) => void;
}) {
  const point = (event: PointerEvent) => {
    const { currentTarget } = event;
    if (!(currentTarget instanceof HTMLElement) || event.buttons === 0) return;
    currentTarget.setPointerCapture(event.pointerId);
    const { left, top, width, height } = currentTarget.getBoundingClientRect();
    moveTo(kind === 'across' ? (event.clientX - left) / width : (event.clientY - top) / height);
  };
  return (
    <div ref={bar} class={`position ${kind}`} aria-hidden="true" hidden onPointerDown={point} onPointerMove={point}>
      <span />
    </div>
  );
}

function cellOf({ blocks }: Scene, uuid: string): number | undefined {
  for (const { group, first } of blocks) {
    const index = group.trees.findIndex((tree) => tree.uuid === uuid);
    if (index !== -1) return first + index;
  }
  return undefined;
}

import type { Ref } from 'preact';
import { useEffect, useImperativeHandle, useMemo, useRef, useState } from 'preact/hooks';
import { useStore } from '../store.ts';
import { visible } from '../text.tsx';
import { draw } from './draw.ts';
import type { Group } from './grouping.ts';
import {
  type Camera,
  cellAt,
  clamped,
  type Direction,
  heightAt,
  type Layout,
  layOut,
  neighbour,
  positionOf,
  zoomed,
} from './layout.ts';
import { currentPalette } from './palette.ts';
import { onGestures, type Place } from './pointing.ts';
import type { Measure, Tree } from './trees.ts';

/** The actions of the buttons beside the grid. */
export type GridControl = {
  zoom(factor: number): void;
  showAll(): void;
  /** Selects a tree, and moves the camera to it. */
  show(uuid: string): void;
};

type Props = {
  readonly groups: readonly Group[];
  readonly resourceClass: string;
  readonly measure: Measure;
  readonly search: string;
  readonly selected: string | undefined;
  readonly control: Ref<GridControl>;
  readonly onSelect: (tree: Tree | undefined) => void;
  readonly onHover: (tree: Tree | undefined) => void;
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

/** The size of a cell in a narrow window. */
const narrowCellPx = 14;

const treeOf = ({ blocks }: Layout, cell: number): Tree | undefined => {
  const block = blocks.findLast(({ first }) => first <= cell);
  return block?.group.trees[cell - block.first];
};

/** All trees as cells on a canvas: it is zoomed by wheel, pinching and keys, and moved by dragging. */
export function Grid(props: Props) {
  const { groups, control } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const palette = useStore(currentPalette);
  const layout = useMemo(
    () => layOut(groups, Math.max(1, size.width), Math.max(1, size.height)),
    [groups, size.width, size.height],
  );
  const view = useRef({
    camera: { x: 0, y: 0, scale: 0 } as Camera,
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
      const { props, layout, size, palette } = latest.current;
      const context = canvas.current?.getContext('2d', { alpha: false });
      if (!context || size.width === 0) return;
      context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
      const { resourceClass, measure, search } = props;
      draw(context, {
        layout,
        camera: now.camera,
        widthPx: size.width,
        heightPx: size.height,
        palette,
        resourceClass,
        measure,
        search,
        selected: now.cell,
        hovered: now.hovered,
      });
    });
  };

  const setCamera = (camera: Camera) => {
    const { layout, size } = latest.current;
    const now = view.current;
    now.camera = clamped(camera, layout, size.width, size.height);
    now.isWhole = now.camera.scale <= layout.fit * 1.001;
    // While the whole grid is visible, one finger scrolls the page.
    if (canvas.current) canvas.current.style.touchAction = now.isWhole ? 'pan-y' : 'none';
    redraw();
  };
  const zoomAt = (factor: number, x: number, y: number) => {
    const { layout, size } = latest.current;
    setCamera(zoomed(view.current.camera, factor, x, y, layout, size.width, size.height));
  };
  const select = (cell: number | undefined) => {
    view.current.cell = cell;
    latest.current.props.onSelect(cell === undefined ? undefined : treeOf(latest.current.layout, cell));
    redraw();
  };
  /** Moves the camera so that a cell is seen. */
  const bringIntoView = (cell: number) => {
    const { layout, size } = latest.current;
    const { camera } = view.current;
    const at = positionOf(layout, cell);
    const wide = size.width / camera.scale;
    const high = size.height / camera.scale;
    const x = at.x < camera.x ? at.x : at.x + 1 > camera.x + wide ? at.x + 1 - wide : camera.x;
    const y = at.y < camera.y ? at.y : at.y + 1 > camera.y + high ? at.y + 1 - high : camera.y;
    setCamera({ ...camera, x, y });
  };
  /** The fixed point when keys zoom: the selected cell, or the middle. */
  const zoomByKey = (factor: number) => {
    const { layout, size } = latest.current;
    const { cell, camera } = view.current;
    if (cell === undefined) return zoomAt(factor, size.width / 2, size.height / 2);
    const at = positionOf(layout, cell);
    zoomAt(factor, (at.x + 0.5 - camera.x) * camera.scale, (at.y + 0.5 - camera.y) * camera.scale);
    bringIntoView(cell);
  };
  const showAll = () => setCamera({ x: 0, y: 0, scale: latest.current.layout.fit });

  useImperativeHandle(control, () => ({
    zoom: zoomByKey,
    showAll,
    show: (uuid) => {
      const { layout, size } = latest.current;
      const cell = cellOf(layout, uuid);
      if (cell === undefined) return;
      select(cell);
      const at = positionOf(layout, cell);
      const scale = Math.max(view.current.camera.scale, 64);
      setCamera({ scale, x: at.x + 0.5 - size.width / scale / 2, y: at.y + 0.5 - size.height / scale / 2 });
    },
  }));

  // In a narrow window the page scrolls, so the canvas may be higher than the window.
  useEffect(() => {
    const around = canvas.current?.parentElement;
    if (!around || size.width === 0) return;
    const wanted = Math.min(heightAt(groups, size.width, narrowCellPx), 3 * innerHeight);
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
    return () => observer.disconnect();
  }, []);

  // A camera that showed the whole grid still does so after a change; any other camera keeps its place.
  useEffect(() => {
    const now = view.current;
    if (now.isWhole) showAll();
    else setCamera(now.camera);
    const { selected } = latest.current.props;
    if (selected === undefined) now.cell = undefined;
    else if (now.cell === undefined || treeOf(layout, now.cell)?.uuid !== selected) now.cell = cellOf(layout, selected);
    redraw();
  }, [layout, props.selected]);
  useEffect(redraw);

  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const cellOn = ({ x, y }: Place): number | undefined => {
      const { camera } = view.current;
      return cellAt(latest.current.layout, camera.x + x / camera.scale, camera.y + y / camera.scale);
    };
    const treeOn = (cell: number | undefined) => (cell === undefined ? undefined : treeOf(latest.current.layout, cell));
    const stop = onGestures(element, {
      zoom: (factor, { x, y }) => zoomAt(factor, x, y),
      drag: ({ x, y }) => {
        const { camera } = view.current;
        setCamera({ ...camera, x: camera.x - x / camera.scale, y: camera.y - y / camera.scale });
      },
      click: (at) => select(cellOn(at)),
      doubleClick: (at) => {
        const tree = treeOn(cellOn(at));
        if (tree !== undefined) latest.current.props.onOpen(tree);
      },
      hover: (at) => {
        const cell = at === undefined ? undefined : cellOn(at);
        if (view.current.hovered === cell) return;
        view.current.hovered = cell;
        latest.current.props.onHover(treeOn(cell));
        redraw();
      },
    });
    return () => {
      stop();
      cancelAnimationFrame(view.current.frame);
      view.current.frame = 0;
    };
  }, []);

  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { layout } = latest.current;
    const { cell } = view.current;
    const direction = directions[event.key];
    if (direction !== undefined && layout.cells > 0) {
      const next = cell === undefined ? 0 : neighbour(layout, cell, direction);
      select(next);
      bringIntoView(next);
    } else if (event.key === '+' || event.key === '=') zoomByKey(zoomStep);
    else if (event.key === '-') zoomByKey(1 / zoomStep);
    else if (event.key === '0') showAll();
    else if (event.key === 'Home' && layout.cells > 0) {
      select(0);
      bringIntoView(0);
    } else if (event.key === 'End' && layout.cells > 0) {
      select(layout.cells - 1);
      bringIntoView(layout.cells - 1);
    } else if (event.key === 'Escape') select(undefined);
    else if (event.key === 'Enter' && cell !== undefined) {
      const tree = treeOf(layout, cell);
      if (tree !== undefined) props.onOpen(tree);
    } else return;
    event.preventDefault();
  };

  return (
    // biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: it takes keys, as an application does
    <canvas
      ref={canvas}
      class="grid"
      tabIndex={0}
      role="application"
      aria-roledescription="grid of providers"
      aria-label={`${layout.cells} providers in ${groups.length} groups, coloured by ${visible(props.resourceClass)}. The table has the same in text.`}
      aria-describedby="grid-keys"
      data-cells={layout.cells}
      onKeyDown={key}
    />
  );
}

function cellOf({ blocks }: Layout, uuid: string): number | undefined {
  for (const { group, first } of blocks) {
    const place = group.trees.findIndex((tree) => tree.uuid === uuid);
    if (place !== -1) return first + place;
  }
  return undefined;
}

/** A point in pixels from the upper left corner of an element. */
export type Point = { readonly x: number; readonly y: number };

/** What gestures do. */
export type Gestures = {
  /** The wheel was turned, or two fingers moved: `at` stays where it is. */
  zoom(factor: number, at: Point): void;
  /** One pointer was dragged by this number of pixels. */
  drag(by: Point): void;
  click(at: Point): void;
  doubleClick(at: Point): void;
  /** The pointer is at a point without a button pressed; undefined when it left. */
  hover(at: Point | undefined): void;
};

/** A pointer that moved less between down and up has clicked. */
const clickPx = 6;

/**
 * Reports gestures of mouse, pen and fingers on an element.
 *
 * @returns a function that removes the listeners
 */
export function onGestures(element: HTMLElement, gestures: Gestures): () => void {
  const listening = new AbortController();
  const listen = <Name extends keyof HTMLElementEventMap>(
    name: Name,
    listener: (event: HTMLElementEventMap[Name]) => void,
  ) => element.addEventListener(name, listener, { signal: listening.signal, passive: false });
  const pointOf = (event: MouseEvent): Point => {
    const { left, top } = element.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  const pointers = new Map<number, Point>();
  let moved = 0;

  listen('wheel', (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    gestures.zoom(Math.exp(-event.deltaY * lines * 0.0022), pointOf(event));
  });
  listen('pointerdown', (event) => {
    pointers.set(event.pointerId, pointOf(event));
    if (pointers.size === 1) moved = 0;
    element.setPointerCapture(event.pointerId);
  });
  listen('pointermove', (event) => {
    const before = pointers.get(event.pointerId);
    const now = pointOf(event);
    if (before === undefined) return gestures.hover(now);
    const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    pointers.set(event.pointerId, now);
    moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (other === undefined) return gestures.drag({ x: now.x - before.x, y: now.y - before.y });
    const factor = distance(now, other) / Math.max(1, distance(before, other));
    gestures.zoom(factor, { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
  });
  const up = (event: PointerEvent) => {
    pointers.delete(event.pointerId);
    if (moved < clickPx && event.type === 'pointerup') gestures.click(pointOf(event));
  };
  listen('pointerup', up);
  listen('pointercancel', up);
  listen('pointerleave', () => gestures.hover(undefined));
  listen('dblclick', (event) => gestures.doubleClick(pointOf(event)));
  return () => listening.abort();
}

const distance = (one: Point, other: Point): number => Math.hypot(one.x - other.x, one.y - other.y);

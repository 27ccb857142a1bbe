import { createStore } from '../store.ts';

/** The colours of the grid. */
export type Palette = {
  /** By fullness, in equal steps from empty to full. */
  readonly steps: readonly string[];
  /** The colour of a text on each step. */
  readonly inks: readonly string[];
  readonly over: string;
  readonly overInk: string;
  /** The frame of a provider that has nothing of the class; it is hollow, so that it does not look empty. */
  readonly none: string;
  readonly noneInk: string;
  /** Where a query nearly fits. */
  readonly near: string;
  readonly nearInk: string;
  /** What is drained has stripes. */
  readonly drained: string;
  readonly stripe: string;
  readonly drainedInk: string;
  readonly background: string;
  readonly ink: string;
  readonly faint: string;
  readonly accent: string;
};

type Stops = readonly (readonly [at: number, red: number, green: number, blue: number])[];

const lightStops: Stops = [
  [0, 228, 236, 243],
  [0.5, 143, 186, 222],
  [0.85, 52, 118, 184],
  [1, 18, 62, 120],
];
const darkStops: Stops = [
  [0, 33, 42, 52],
  [0.5, 40, 88, 138],
  [0.85, 98, 160, 222],
  [1, 196, 224, 250],
];

/** The number of steps. Only a full tree has the last step. */
export const stepCount = 21;

function colourAt(stops: Stops, part: number): readonly [number, number, number] {
  const next = stops.findIndex(([at]) => at >= part);
  const [toAt = 1, ...to] = stops[Math.max(next, 0)] ?? [];
  const [fromAt = 0, ...from] = stops[Math.max(next - 1, 0)] ?? [];
  const way = toAt === fromAt ? 0 : (part - fromAt) / (toAt - fromAt);
  const mix = (place: 0 | 1 | 2) => Math.round((from[place] ?? 0) + ((to[place] ?? 0) - (from[place] ?? 0)) * way);
  return [mix(0), mix(1), mix(2)];
}

function palette(stops: Stops, rest: Omit<Palette, 'steps' | 'inks'>, darkInk: string, lightInk: string): Palette {
  const colours = Array.from({ length: stepCount }, (_, step) => colourAt(stops, step / (stepCount - 1)));
  return {
    ...rest,
    steps: colours.map((rgb) => `rgb(${rgb.join(' ')})`),
    inks: colours.map(([red, green, blue]) => (luminance(red, green, blue) > 0.22 ? darkInk : lightInk)),
  };
}

function luminance(...rgb: readonly number[]): number {
  const [red = 0, green = 0, blue = 0] = rgb.map((value) => ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

const light = palette(
  lightStops,
  {
    over: '#c2410c',
    overInk: '#ffffff',
    none: '#857a6a',
    noneInk: '#6b6459',
    near: '#f0b03c',
    nearInk: '#2b1d00',
    drained: '#eae6dd',
    stripe: '#b9ad98',
    drainedInk: '#2c261c',
    background: '#ffffff',
    ink: '#1b2530',
    faint: '#5a6673',
    accent: '#0b57b7',
  },
  '#12202e',
  '#ffffff',
);
const dark = palette(
  darkStops,
  {
    over: '#f08a4b',
    overInk: '#1a0d04',
    none: '#958a79',
    noneInk: '#a49a8a',
    near: '#d0952f',
    nearInk: '#1a1000',
    drained: '#2a2722',
    stripe: '#6e6452',
    drainedInk: '#f3eee4',
    background: '#12171d',
    ink: '#e3e9ef',
    faint: '#98a4b1',
    accent: '#7db8ff',
  },
  '#0c141c',
  '#f2f7fc',
);

const isDark = matchMedia('(prefers-color-scheme: dark)');

/** The palette for the colours that the system prefers. */
export const currentPalette = createStore<Palette>(isDark.matches ? dark : light);
isDark.addEventListener('change', () => currentPalette.set(isDark.matches ? dark : light));

/** How a cell is drawn: by a step of the colours, or as one of these. */
export type Shade = number | 'over' | 'none' | 'near' | 'drained';

/** The shades that are no steps. */
const otherShades = ['over', 'none', 'near', 'drained'] as const;

/** How many shades there are. */
export const shadeCount = stepCount + otherShades.length;

/** A shade as a number below `shadeCount`. */
export const codeOf = (shade: Shade): number =>
  typeof shade === 'number' ? shade : stepCount + otherShades.indexOf(shade);

/** The shade of a number. */
export const shadeOf = (code: number): Shade => otherShades[code - stepCount] ?? code;

/** The colour of a shade, and that of a text on it. */
export function coloursOf(shade: Shade, palette: Palette): { readonly fill: string; readonly ink: string } {
  switch (shade) {
    case 'over':
      return { fill: palette.over, ink: palette.overInk };
    case 'near':
      return { fill: palette.near, ink: palette.nearInk };
    case 'drained':
      return { fill: palette.drained, ink: palette.drainedInk };
    case 'none':
      return { fill: palette.none, ink: palette.noneInk };
    default:
      return { fill: palette.steps[shade] ?? palette.none, ink: palette.inks[shade] ?? palette.ink };
  }
}

/**
 * The step of a fullness: `over` above 1, `none` for NaN. Only a full tree has the last step, and only an empty tree
 * the first.
 */
export function stepOf(fullness: number): number | 'over' | 'none' {
  if (Number.isNaN(fullness)) return 'none';
  if (fullness > 1) return 'over';
  if (fullness === 1) return stepCount - 1;
  if (fullness <= 0) return 0;
  return 1 + Math.floor(fullness * (stepCount - 2));
}

/** A colour: red, green and blue, from 0 to 255. */
export type Rgb = readonly [red: number, green: number, blue: number];

/** The contrast from which a small text is read well (WCAG 1.4.3). */
const readable = 4.5;

/** Reads `#rrggbb` or `rgb(r, g, b)`. */
export function rgbOf(text: string): Rgb {
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text);
  const values =
    hex === null ? (text.match(/[\d.]+/g) ?? []).map(Number) : hex.slice(1).map((each) => Number.parseInt(each, 16));
  const [red = 0, green = 0, blue = 0] = values;
  return [red, green, blue];
}

function luminance(rgb: Rgb): number {
  const [red = 0, green = 0, blue = 0] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** The contrast of two colours, from 1 to 21. */
export function contrast(a: Rgb, b: Rgb): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/** The colours of the grid. */
export type Palette = {
  /** By fullness, in equal steps from empty to full. */
  readonly steps: readonly string[];
  /** The colour of a text on each step. */
  readonly inks: readonly string[];
  readonly over: string;
  readonly overInk: string;
  /** The frame of a provider without an inventory of the class: it is hollow, to differ from an empty one. */
  readonly none: string;
  readonly noneInk: string;
  /** Where a query nearly fits. */
  readonly near: string;
  readonly nearInk: string;
  /** Drained trees have stripes. */
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
  [0, 212, 223, 233],
  [0.5, 143, 186, 222],
  [0.85, 52, 118, 184],
  [1, 18, 62, 120],
];
const darkStops: Stops = [
  [0, 42, 53, 65],
  [0.5, 40, 88, 138],
  [0.85, 98, 160, 222],
  [1, 196, 224, 250],
];

/** The number of steps. Only a full tree has the last step. */
export const stepCount = 21;

function colourAt(stops: Stops, part: number): Rgb {
  const next = stops.findIndex(([at]) => at >= part);
  const [toAt = 1, ...to] = stops[Math.max(next, 0)] ?? [];
  const [fromAt = 0, ...from] = stops[Math.max(next - 1, 0)] ?? [];
  const way = toAt === fromAt ? 0 : (part - fromAt) / (toAt - fromAt);
  const mix = (index: 0 | 1 | 2) => Math.round((from[index] ?? 0) + ((to[index] ?? 0) - (from[index] ?? 0)) * way);
  return [mix(0), mix(1), mix(2)];
}

function palette(stops: Stops, rest: Omit<Palette, 'steps' | 'inks'>, darkInk: string, lightInk: string): Palette {
  const colours = Array.from({ length: stepCount }, (_, step) => colourAt(stops, step / (stepCount - 1)));
  return {
    ...rest,
    steps: colours.map((rgb) => `rgb(${rgb.join(' ')})`),
    inks: colours.map((rgb) => inkOn(rgb, [darkInk, lightInk, '#000000', '#ffffff'])),
  };
}

/** The first of some text colours with enough contrast on a colour, or else the one with the highest contrast. */
function inkOn(rgb: Rgb, inks: readonly string[]): string {
  const contrasts = inks.map((ink) => ({ ink, contrast: contrast(rgb, rgbOf(ink)) }));
  const best = contrasts.reduce((most, each) => (each.contrast > most.contrast ? each : most));
  return (contrasts.find((each) => each.contrast >= readable) ?? best).ink;
}

/** For a light page. */
export const light = palette(
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
/** For a dark page. */
export const dark = palette(
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

/** The colours of the system that a page with forced colours uses. */
export type SystemColours = Readonly<
  Record<'Canvas' | 'CanvasText' | 'Highlight' | 'HighlightText' | 'GrayText', string>
>;

/** For a page with forced colours: from nearly the colour of the page to the colour of its texts. */
export function forced({ Canvas, CanvasText, Highlight, HighlightText, GrayText }: SystemColours): Palette {
  const [from, to] = [rgbOf(Canvas), rgbOf(CanvasText)];
  const least = 0.2;
  const start = from.map((value, index) => value + ((to[index] ?? 0) - value) * least);
  const [red = 0, green = 0, blue = 0] = start;
  return palette(
    [
      [0, red, green, blue],
      [1, ...to],
    ],
    {
      over: Highlight,
      overInk: HighlightText,
      none: CanvasText,
      noneInk: CanvasText,
      near: Canvas,
      nearInk: CanvasText,
      drained: Canvas,
      stripe: GrayText,
      drainedInk: CanvasText,
      background: Canvas,
      ink: CanvasText,
      faint: CanvasText,
      accent: Highlight,
    },
    CanvasText,
    Canvas,
  );
}

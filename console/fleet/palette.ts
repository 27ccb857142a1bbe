import { createStore } from '../store.ts';
import { dark, forced, light, type Palette, type SystemColours, stepCount } from './palettes.ts';

export type { Palette } from './palettes.ts';
export { stepCount } from './palettes.ts';

const isDark = matchMedia('(prefers-color-scheme: dark)');
const isForced = matchMedia('(forced-colors: active)');

/** The values of the system colours. They are read from an element, since a canvas has no style. */
function systemColours(): SystemColours {
  const probe = document.createElement('span');
  document.body.append(probe);
  const read = (name: keyof SystemColours) => {
    probe.style.color = name;
    return getComputedStyle(probe).color;
  };
  const colours = {
    Canvas: read('Canvas'),
    CanvasText: read('CanvasText'),
    Highlight: read('Highlight'),
    HighlightText: read('HighlightText'),
    GrayText: read('GrayText'),
  };
  probe.remove();
  return colours;
}

const current = (): Palette => (isForced.matches ? forced(systemColours()) : isDark.matches ? dark : light);

/** The palette for the colours that the system prefers, or forces. */
export const currentPalette = createStore<Palette>(current());
for (const query of [isDark, isForced]) query.addEventListener('change', () => currentPalette.set(current()));

/** How a cell is drawn: with a step of the colours, or in one of these states. */
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

/** The colour of a shade, and the colour of a text on it. */
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

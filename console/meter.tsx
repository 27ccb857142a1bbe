import { type Amounts, fullness } from './fleet/trees.ts';
import { numberText, percentText, visible } from './text.tsx';

/** A bar that shows how full something is. The text beside it says the same. */
export function Bar({ part }: { readonly part: number }) {
  const width = Math.min(1, Math.max(0, part)) * 100;
  const kind = Number.isNaN(part) ? 'none' : part > 1 ? 'over' : part >= 0.9 ? 'high' : 'usual';
  return (
    <svg class={`bar ${kind}`} viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="rail" width="100" height="8" />
      {Number.isNaN(part) ? null : <rect class="fill" width={Number.isFinite(part) ? width : 100} height="8" />}
    </svg>
  );
}

/** The amounts of several classes, each with a bar. */
export function AmountBars({ amounts }: { readonly amounts: ReadonlyMap<string, Amounts> }) {
  return (
    <dl class="amounts">
      {[...amounts].map(([name, each]) => (
        <div key={name}>
          <dt>{visible(name)}</dt>
          <dd>
            <span class="numbers">
              {numberText(each.used)} of {numberText(each.capacity)}
            </span>
            <span class="percent">{percentText(fullness(each, 'capacity'))}</span>
            <Bar part={fullness(each, 'capacity')} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

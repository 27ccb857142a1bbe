import { Amount } from './amount.tsx';
import { type Amounts, fullness } from './fleet/trees.ts';
import { percentText, visible } from './text.ts';

/** A bar that shows a fraction, or with a `kind` a duration. The text next to it has the same value. */
export function Bar({
  part,
  kind = kindOf(part),
}: {
  readonly part: number;
  readonly kind?: ReturnType<typeof kindOf>;
}) {
  const width = Math.min(1, Math.max(0, part)) * 100;
  return (
    <svg class={`bar ${kind}`} viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="rail" width="100" height="8" />
      {Number.isNaN(part) ? null : <rect class="fill" width={Number.isFinite(part) ? width : 100} height="8" />}
    </svg>
  );
}

const kindOf = (part: number): 'none' | 'over' | 'high' | 'usual' =>
  Number.isNaN(part) ? 'none' : part > 1 ? 'over' : part >= 0.9 ? 'high' : 'usual';

/** The amounts of several classes, each with a bar. */
export function AmountBars({ amounts }: { readonly amounts: ReadonlyMap<string, Amounts> }) {
  return (
    <dl class="amounts">
      {[...amounts].map(([name, each]) => (
        <div key={name}>
          <dt>{visible(name)}</dt>
          <dd>
            <span class="numbers">
              <Amount of={name} is={each.used} /> of <Amount of={name} is={each.capacity} />
            </span>
            <span class="percent">{percentText(fullness(each, 'capacity'))}</span>
            <Bar part={fullness(each, 'capacity')} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

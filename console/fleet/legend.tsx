import { useMemo } from 'preact/hooks';
import { useStore } from '../store.ts';
import { counted } from '../text.ts';
import { currentPalette, stepCount, stepOf } from './palette.ts';
import { fullness, type Measure, type Tree } from './trees.ts';

/** The number of trees for each step of fullness. It is also the legend of the colours. */
export function Legend({
  trees,
  resourceClass,
  measure,
}: {
  readonly trees: readonly Tree[];
  readonly resourceClass: string;
  readonly measure: Measure;
}) {
  const { steps, over, none } = useStore(currentPalette);
  const { counts, overCount, noneCount, drainedCount } = useMemo(
    () => countsOf(trees, resourceClass, measure),
    [trees, resourceClass, measure],
  );
  const most = Math.max(1, ...counts, overCount);
  const bars = [
    ...counts.map((count, step) => ({ count, colour: steps[step] ?? none })),
    { count: overCount, colour: over },
  ];
  const full = counts[stepCount - 1] ?? 0;
  const empty = counts[0] ?? 0;
  const sentence = `${counted(empty, 'provider is', 'providers are')} empty, ${counted(full, 'is', 'are')} full, ${overCount} over, ${noneCount} ${noneCount === 1 ? 'has' : 'have'} none (hollow)${drainedCount === 0 ? '' : `, ${drainedCount} drained (striped)`}.`;
  const width = 100 / bars.length;
  return (
    <figure class="legend">
      <svg viewBox="0 0 100 44" preserveAspectRatio="none" role="img" aria-label={`How full: ${sentence}`}>
        {bars.map(({ count, colour }, index) => {
          const height = count === 0 ? 0 : Math.max(1.5, (count / most) * 36);
          return (
            <g key={index} fill={colour}>
              <rect x={index * width + 0.2} y={37 - height} width={width - 0.4} height={height} />
              <rect x={index * width} y={39} width={width} height={5} />
            </g>
          );
        })}
      </svg>
      <div class="ticks" aria-hidden="true">
        <span>empty</span>
        <span>half</span>
        <span>full, over</span>
      </div>
      <figcaption>{sentence}</figcaption>
    </figure>
  );
}

/** How many trees each step has, and how many are over, have none, or are drained. */
function countsOf(trees: readonly Tree[], resourceClass: string, measure: Measure) {
  const counts = new Array<number>(stepCount).fill(0);
  let [overCount, noneCount, drainedCount] = [0, 0, 0];
  for (const { amounts, drain } of trees) {
    const step = stepOf(fullness(amounts.get(resourceClass), measure));
    if (drain === 'drained') drainedCount++;
    else if (step === 'over') overCount++;
    else if (step === 'none') noneCount++;
    else counts[step] = (counts[step] ?? 0) + 1;
  }
  return { counts, overCount, noneCount, drainedCount };
}

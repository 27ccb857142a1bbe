import type { WholeProvider } from '../../src/client/provider_summaries.ts';
import { compareNames } from '../../src/text/strings.ts';
import { DrainTag } from '../fleet/drain.tsx';
import { amountsOf, drainOfTree, fullness } from '../fleet/trees.ts';
import { Bar } from '../meter.tsx';
import { Name } from '../name.tsx';
import { Link, urlOf } from '../route.tsx';
import { percentText } from '../text.ts';

type Line = { readonly provider: WholeProvider; readonly level: number };

/** Deeper ones are not indented further. */
const deepest = 12;

/** The providers of a tree in the order of drawing. A list serves as the stack, because a tree may be deep. */
function linesOf(providers: readonly WholeProvider[]): readonly Line[] {
  const known = new Set(providers.map(({ uuid }) => uuid));
  const children = Map.groupBy(providers, ({ uuid, parent_provider_uuid: parent, root_provider_uuid: root }) =>
    parent !== null && uuid !== root && known.has(parent) ? parent : '',
  );
  const sorted = (parent: string, level: number) =>
    (children.get(parent) ?? [])
      .map((provider): Line => ({ provider, level }))
      .sort((a, b) => compareNames(b.provider.name, a.provider.name));
  const lines: Line[] = [];
  const rest = sorted('', 0);
  for (let line = rest.pop(); line !== undefined; line = rest.pop()) {
    lines.push(line);
    rest.push(...sorted(line.provider.uuid, line.level + 1));
  }
  return lines;
}

/** The tree of a provider, each member with the fullest of its classes. */
export function TreeList({
  providers,
  current,
}: {
  readonly providers: readonly WholeProvider[];
  readonly current: string;
}) {
  return (
    <ul class="tree">
      {linesOf(providers).map(({ provider, level }) => {
        const drain = drainOfTree([provider]);
        const [fullest] = [...amountsOf(provider)]
          .map(([name, amounts]) => ({ name, part: fullness(amounts, 'capacity') }))
          .filter(({ part }) => !Number.isNaN(part))
          .sort((a, b) => b.part - a.part);
        return (
          <li key={provider.uuid} class={`level-${Math.min(level, deepest)}`}>
            <Link to={urlOf('providers', provider.uuid)} current={provider.uuid === current}>
              <Name text={provider.name} />
            </Link>{' '}
            <DrainTag drain={drain} />
            {drain === 'drained' ? null : fullest === undefined ? (
              <span class="faint">nothing</span>
            ) : (
              <span class="fullest">
                <Bar part={fullest.part} />
                <span>
                  {fullest.name} {percentText(fullest.part)}
                </span>
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}

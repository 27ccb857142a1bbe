import type { Resources } from '../src/client/filters.ts';
import { amountText, exactText, visible } from './text.ts';

/** An amount of a class in a unit that is easy to read, with the exact number as its title. */
export const Amount = ({ of: resourceClass, is: amount }: { readonly of: string; readonly is: number }) => (
  <span title={exactText(resourceClass, amount)}>{amountText(resourceClass, amount)}</span>
);

/** `2 VCPU, 2 GiB MEMORY_MB`, each with the exact number as its title. */
export const ResourcesText = ({ resources }: { readonly resources: Resources }) => (
  <>
    {Object.entries(resources).map(([name, amount], index) => (
      <span key={name}>
        {index === 0 ? '' : ', '}
        <Amount of={name} is={amount} /> {visible(name)}
      </span>
    ))}
  </>
);

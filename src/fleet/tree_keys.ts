import { freeOf, type Provider } from './provider.ts';

/** By what trees, and the providers of a tree, are ordered: smaller values come first. */
export type TreeKey =
  | { readonly kind: 'free'; readonly classId: number; readonly mostFirst: boolean }
  | { readonly kind: 'prefer'; readonly traitId: number };

/** How much of a class a provider can still give: 0 where it has none, and where more is used than there is. */
export const leftOf = (provider: Provider, classId: number): number => Math.max(0, freeOf(provider, classId) ?? 0);

/**
 * The value of a key for some providers together. For a class it is the sum of what they can give, as a negative number
 * if the most comes first. For a trait it is 0 if one of them has it, else 1.
 */
export function keyValue(key: TreeKey, providers: readonly Provider[]): number {
  if (key.kind === 'prefer') return providers.some(({ traitIds }) => traitIds.includes(key.traitId)) ? 0 : 1;
  let left = 0;
  for (const provider of providers) left += leftOf(provider, key.classId);
  return key.mostFirst ? -left : left;
}

import { amountText, visible } from '../text.ts';
import type { Tree } from './trees.ts';

/** A word next to the name of a drained provider. */
export const DrainTag = ({ drain }: Pick<Tree, 'drain'>) =>
  drain === undefined ? null : <span class="tag">{drain === 'drained' ? 'drained' : 'drained in part'}</span>;

/** Sentences about a drained tree and its remaining allocations; empty for a tree that is not drained. */
export function drainText({ drain, amounts }: Pick<Tree, 'drain' | 'amounts'>): string {
  if (drain === undefined) return '';
  if (drain === 'part') return 'It is drained in part, and may take claims.';
  const held = [...amounts].filter(([, { used }]) => used > 0);
  if (held.length === 0) return 'It is drained, and nothing of it is held any more.';
  return `It is drained. Still held: ${held.map(([name, { used }]) => `${amountText(name, used)} ${visible(name)}`).join(', ')}.`;
}

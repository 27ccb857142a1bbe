import { useEffect } from 'preact/hooks';
import { createStore } from './store.ts';

/** The name of what the page shows, once it is read, and the identity in its URL. */
export const titled = createStore<{ readonly id: string; readonly name: string } | undefined>(undefined);

/** Sets the title of the page. */
export function useTitle(id: string, name: string | undefined): void {
  useEffect(() => {
    if (name !== undefined) titled.set({ id, name });
  }, [id, name]);
}

import { createStore } from './store.ts';

/** Whether this page is seen: not so in a tab behind another one. */
export const visibility = createStore(document.visibilityState);
document.addEventListener('visibilitychange', () => visibility.set(document.visibilityState));

/** Waits until this page is seen. */
export function untilVisible(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const check = () => {
    if (visibility.get() === 'visible') resolve();
  };
  const unsubscribe = visibility.subscribe(check);
  check();
  return promise.finally(unsubscribe);
}

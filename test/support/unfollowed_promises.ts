import asyncHooks from 'node:async_hooks';

/*
 * Imported before the files of a test. The runner of Node.js follows every promise, to know to which suite a test belongs, and of which test
 * an error is that nothing caught. Then an `await` takes twenty times as long. When all files are imported, each test has its suite.
 */

let following: asyncHooks.AsyncHook | undefined;
const { createHook } = asyncHooks;

/** The first hook in the process is that of the runner. */
asyncHooks.createHook = (options) => {
  asyncHooks.createHook = createHook;
  following = createHook(options);
  return following;
};

/** Ends it. An error that nothing catches fails the file from now on, not only the test. */
export const unfollowPromises = (): void => {
  following?.disable();
};

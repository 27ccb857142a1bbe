import { connect } from '../src/client/connect.ts';
import { serviceUrl } from './route.tsx';
import { createStore } from './store.ts';

/** The state of the token: not entered yet, entered, or refused by the service. */
export type Token =
  | { readonly state: 'missing' }
  | { readonly state: 'given'; readonly value: string }
  | { readonly state: 'refused'; readonly value: string };

/** The token. It is only in the memory of this page: after a reload, or in another tab, the user must enter it again. */
export const token = createStore<Token>({ state: 'missing' });

/** Whether the service answers. While it does not, requests are repeated until it does. */
export const connection = createStore<'answers' | 'silent'>('answers');

/** The time between two checks whether a service that did not answer is back, in milliseconds. */
const probeMs = 1_500;

connection.subscribe(() => {
  if (connection.get() === 'silent') setTimeout(probe, probeMs);
});

/** Reads the versions, which needs no token. Other requests may wait long for their answers. */
async function probe(): Promise<void> {
  const answer = await fetch(`${serviceUrl}/`, { cache: 'no-store', signal: AbortSignal.timeout(probeMs) }).catch(
    () => undefined,
  );
  if (answer?.ok) connection.set('answers');
  else if (connection.get() === 'silent') setTimeout(probe, probeMs);
}

/** The source of tokens, by `[api] auth_strategy`. */
export const authStrategy = document.documentElement.dataset.auth;

/** Whether a token is the name of a user, and the service checks neither. */
export const isWithoutIdentities = authStrategy === 'noauth2';

/** The time limit for an attempt of a request, in milliseconds. A request that waits for changes takes less. */
const attemptMs = 60_000;

/** After this time without an answer a request is slow, in milliseconds. */
const slowMs = 1_000;

/** How many requests are slow: the shown data may be older than the service. */
export const slowRequests = createStore(0);

/** Counts a request as slow after some time. @returns a function to call when the request is done */
function watchSlow(): () => void {
  let isSlow = false;
  const timer = setTimeout(() => {
    isSlow = true;
    slowRequests.set(slowRequests.get() + 1);
  }, slowMs);
  return () => {
    clearTimeout(timer);
    if (isSlow) slowRequests.set(slowRequests.get() - 1);
  };
}

/** The token, once the user has entered one that was not refused. */
function goodToken(signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const check = () => {
    const now = token.get();
    if (now.state === 'given') resolve(now.value);
  };
  const leave = () => reject(signal.reason);
  const unsubscribe = token.subscribe(check);
  signal.addEventListener('abort', leave, { once: true });
  check();
  return promise.finally(() => {
    unsubscribe();
    signal.removeEventListener('abort', leave);
  });
}

/**
 * Sends a request with the token. If the service refuses the token, the request waits for another one and is sent
 * again.
 */
const withToken: typeof fetch = async (input, init = {}) => {
  const { signal } = init;
  const never = new AbortController().signal;
  for (;;) {
    const value = await goodToken(signal ?? never);
    const both = AbortSignal.any([AbortSignal.timeout(attemptMs), ...(signal ? [signal] : [])]);
    const headers = new Headers(init.headers);
    headers.set('X-Auth-Token', value);
    let answer: Response;
    // A request that waits for changes is meant to take long.
    const answered = headers.has('Prefer') ? () => {} : watchSlow();
    try {
      answer = await fetch(input, { ...init, headers, signal: both, credentials: 'omit', cache: 'no-store' });
    } catch (error) {
      if (!signal?.aborted) connection.set('silent');
      throw error;
    } finally {
      answered();
    }
    connection.set([502, 503, 504].includes(answer.status) ? 'silent' : 'answers');
    if (answer.status !== 401) return answer;
    const now = token.get();
    if (now.state === 'given' && now.value === value) token.set({ state: 'refused', value });
  }
};

/**
 * The client for the service of this page. Its requests have no deadline: they wait for the token, and for a service
 * that does not answer. When the user leaves a view, its requests are aborted.
 */
export const placement = connect({
  endpoint: serviceUrl,
  auth: { headers: async () => ({}), refused: () => false },
  deadlineMs: Number.POSITIVE_INFINITY,
  fetch: withToken,
});

/** The newest version that the service offers. */
export const serverVersion = createStore<string | undefined>(undefined);
placement.serverVersion().then(
  ({ max }) => serverVersion.set(max),
  () => {}, // the views show the error
);

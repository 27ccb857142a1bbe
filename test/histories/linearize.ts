/** An interval in which an operation took effect at one moment; if it has no end, it may also never have. */
export type Interval = { readonly invoked: number; readonly completed: number | undefined };

/** What a system of one state does. */
export type Specification<State, Step> = {
  readonly initial: State;
  /** Equal states have equal keys. */
  keyOf(state: State): string;
  /**
   * The states after a step, as the client saw it; none if it cannot have been so in this state.
   *
   * @param until the step had its effect before then
   */
  after(state: State, step: Step, until: number): readonly State[];
};

/** Steps, and the state after each. */
export type Order<State, Step> = readonly { readonly step: Step; readonly state: State }[];

/**
 * Whether an order exists that explains all answers; if not, how far the best one goes. Undefined if the search was
 * given up.
 */
export type Verdict<State, Step> =
  | { readonly isExplained: undefined }
  | { readonly isExplained: true; readonly order: Order<State, Step> }
  | {
      readonly isExplained: false;
      /** The longest beginning that can be explained, and the state behind it. */
      readonly order: Order<State, Step>;
      readonly state: State;
      /** The steps of which one must come next, and none can. */
      readonly stuck: readonly Step[];
    };

/**
 * Looks for an order of all steps in which each had its effect between its invocation and its completion, and each
 * answer is what the state before it explains (Wing and Gong). A state that was met behind the same steps is not
 * searched twice (Lowe).
 *
 * @param mostStates the search stops after this number
 */
export function linearize<State, Step extends Interval>(
  { initial, keyOf, after }: Specification<State, Step>,
  history: readonly Step[],
  mostStates = 200_000,
): Verdict<State, Step> {
  const steps = history.toSorted((a, b) => a.invoked - b.invoked);
  const isDone = steps.map(() => false);
  const met = new Set<string>();
  const order: { readonly step: Step; readonly state: State }[] = [];
  let left = steps.filter(({ completed }) => completed !== undefined).length;
  let best: { readonly order: Order<State, Step>; readonly state: State } = { order: [], state: initial };

  /** The steps that may come next: those that were invoked before any other one was complete. */
  const mayComeNext = (): { readonly indexes: readonly number[]; readonly until: number } => {
    let firstEnd = Number.POSITIVE_INFINITY;
    const found: number[] = [];
    for (const [index, { invoked, completed }] of steps.entries()) {
      if (invoked > firstEnd) break;
      if (isDone[index]) continue;
      found.push(index);
      if (completed !== undefined) firstEnd = Math.min(firstEnd, completed);
    }
    return { indexes: found.filter((index) => (steps[index]?.invoked ?? 0) < firstEnd), until: firstEnd };
  };
  const keyOfDone = (): string => {
    const first = isDone.indexOf(false);
    const beyond = isDone.flatMap((done, index) => (done && index > first ? [index] : []));
    return `${first}:${beyond}`;
  };
  const search = (state: State): boolean => {
    if (left === 0) return true;
    const key = `${keyOfDone()} ${keyOf(state)}`;
    if (met.has(key) || met.size >= mostStates) return false;
    met.add(key);
    if (order.length > best.order.length) best = { order: [...order], state };
    const { indexes, until } = mayComeNext();
    for (const index of indexes) {
      const step = steps[index];
      if (step === undefined) continue;
      const known = step.completed === undefined ? 0 : 1;
      for (const next of after(state, step, until)) {
        isDone[index] = true;
        left -= known;
        order.push({ step, state: next });
        if (search(next)) return true;
        order.pop();
        left += known;
        isDone[index] = false;
      }
    }
    return false;
  };

  if (search(initial)) return { isExplained: true, order: [...order] };
  if (met.size >= mostStates) return { isExplained: undefined };
  const done = new Set(best.order.map(({ step }) => step));
  const waiting = steps.filter((step) => !done.has(step) && step.completed !== undefined);
  const firstEnd = Math.min(...waiting.map(({ completed }) => completed ?? Number.POSITIVE_INFINITY));
  return { isExplained: false, ...best, stuck: waiting.filter(({ invoked }) => invoked < firstEnd) };
}

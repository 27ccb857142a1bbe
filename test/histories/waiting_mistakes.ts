import type { Mistake } from './mistake.ts';

const waiting = 'src/claims/waiting/waiting.ts';

/** Mistakes about claims that wait. Random schedules of such claims must find them. */
export const waitingMistakes: readonly Mistake[] = [
  {
    name: 'a small claim of a line overtakes a large one of another process',
    needs: 'schedules',
    file: 'db/statements/claims/waiting.ts',
    from: '} and w.number < $',
    to: '} and w.number < 0 * $',
    processes: 2,
  },
  {
    name: 'a wake-up is lost: a release wakes no claim',
    needs: 'schedules',
    file: 'src/fleet/keep/keeper.ts',
    from: 'deltas.some((delta) => delta < 0) ? [provider] : []',
    to: '[]',
  },
  {
    name: 'a gang that waits is placed in part',
    needs: 'schedules',
    file: 'src/claims/judge.ts',
    from: 'const consumers = claim.consumers.map(',
    to: 'const consumers = claim.consumers.slice(0, 1).map(',
  },
  {
    name: 'a client that has left gets its claim',
    needs: 'schedules',
    file: waiting,
    from: 'isCancelled: () => wait.gone.aborted ||',
    to: 'isCancelled: () => false &&',
    more: [{ from: "leave: () => end(waiter, clientLeft(), 'left'),", to: 'leave: () => {},' }],
  },
  {
    name: 'of claims that wait the last one gets room first',
    needs: 'schedules',
    file: 'src/claims/waiting/groups.ts',
    from: 'list.splice(low, 0, item);',
    to: 'list.unshift(item);',
  },
];

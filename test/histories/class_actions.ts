import { type Action, errorOf } from './action.ts';
import type { Amounts, State } from './state.ts';

/*
 * Custom resource classes, which are known by their names. Inventories and allocations follow a class that gets another name.
 */

/** PUT /resource_classes/{name} at 1.6: another name. */
export const renameClass = (name: string, to: string): Action => ({
  method: 'PUT',
  path: `/resource_classes/${name}`,
  microversion: 1006,
  body: { name: to },
  after: (state, reply) => {
    if (!state.classes.includes(name)) return reply?.status === 404 ? [state] : [];
    if (to !== name && state.classes.includes(to)) return reply?.status === 409 ? [state] : [];
    return reply === undefined || reply.status === 200 ? [withOtherName(state, name, to)] : [];
  },
});

function withOtherName(state: State, name: string, to: string): State {
  const renamed = <Value>(byClass: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> =>
    Object.hasOwn(byClass, name)
      ? Object.fromEntries(Object.entries(byClass).map(([each, value]) => [each === name ? to : each, value]))
      : byClass;
  const inAll = <Item>(all: Readonly<Record<string, Item>>, change: (item: Item) => Item) =>
    Object.fromEntries(Object.entries(all).map(([uuid, item]) => [uuid, change(item)]));
  return {
    ...state,
    classes: state.classes.map((each) => (each === name ? to : each)),
    providers: inAll(state.providers, (provider) => ({ ...provider, inventories: renamed(provider.inventories) })),
    consumers: inAll(state.consumers, (consumer) => ({
      ...consumer,
      allocations: inAll(consumer.allocations, (amounts: Amounts) => renamed(amounts)),
    })),
  };
}

/** PUT /resource_classes/{name} from 1.7 on: makes it, unless it exists. */
export const ensureClass = (microversion: number, name: string): Action => ({
  method: 'PUT',
  path: `/resource_classes/${name}`,
  microversion,
  after: (state, reply) => {
    if (state.classes.includes(name)) return reply === undefined || reply.status === 204 ? [state] : [];
    const after = [{ ...state, classes: [...state.classes, name] }];
    return reply === undefined || reply.status === 201 ? after : [];
  },
});

/** DELETE /resource_classes/{name}. */
export const removeClass = (microversion: number, name: string): Action => ({
  method: 'DELETE',
  path: `/resource_classes/${name}`,
  microversion,
  after: (state, reply) => {
    if (!state.classes.includes(name)) return reply?.status === 404 ? [state] : [];
    const isUsed = Object.values(state.providers).some(({ inventories }) => inventories[name] !== undefined);
    if (isUsed) return reply?.status === 409 && errorOf(reply).detail.includes('in use') ? [state] : [];
    const after = [{ ...state, classes: state.classes.filter((each) => each !== name) }];
    return reply === undefined || reply.status === 204 ? after : [];
  },
});

/** The views of the console. The URL of a view is `/console/` and its name; `/console` is the first one. */
const views = [
  'fleet',
  'aggregates',
  'providers',
  'consumers',
  'limits',
  'holdings',
  'waiting',
  'fit',
  'changes',
] as const;

/** The name of a view. */
export type View = (typeof views)[number];

/** Whether a part of a URL is the name of a view. */
export const isView = (name: string): name is View => views.some((view) => view === name);

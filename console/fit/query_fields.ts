import { shellWord } from '../../src/cli/shell_word.ts';
import type { CandidateQuery, OrderKey } from '../../src/client/candidates.ts';
import type { ProviderFilter } from '../../src/client/filters.ts';
import { nearName } from '../../src/text/strings.ts';
import { amountFrom } from '../text.ts';

/** A resource class and an amount, as they are written in the form. */
export type AmountField = { readonly name: string; readonly amount: string };

/** A group of the query, as it is written in the form. The first one has no suffix. */
export type GroupFields = {
  readonly suffix: string;
  readonly resources: readonly AmountField[];
  readonly required: readonly string[];
  readonly member_of: readonly string[];
  readonly in_tree: string;
};

/** The form of a query. */
export type QueryFields = {
  readonly groups: readonly GroupFields[];
  readonly group_policy: string;
  readonly root_required: readonly string[];
  /** Each item is a list of suffixes, separated by commas. */
  readonly same_subtree: readonly string[];
  readonly order: string;
  /** The provider for which the view shows why the query does not fit. */
  readonly tree: string;
};

const emptyGroup = (suffix: string): GroupFields => ({
  suffix,
  resources: [],
  required: [],
  member_of: [],
  in_tree: '',
});

/** A group with the next suffix that is free. */
export function newGroup(groups: readonly GroupFields[]): GroupFields {
  let number = 1;
  while (groups.some(({ suffix }) => suffix === `_${number}`)) number++;
  return { ...emptyGroup(`_${number}`), resources: [{ name: '', amount: '1' }] };
}

/** Conditions with another one, if it is one and is not among them. */
export const withWord = (words: readonly string[], word: string): readonly string[] =>
  word === '' || words.includes(word) ? words : [...words, word];

const splitList = (text: string): readonly string[] => text.split(',').filter((each) => each !== '');

/**
 * Reads the form from a URL, which has the query of `GET /allocation_candidates`. Parameters that the form lacks are
 * left out.
 */
export function fieldsOf(query: URLSearchParams): QueryFields {
  const groups = new Map<string, GroupFields>([['', emptyGroup('')]]);
  const change = (suffix: string, next: (group: GroupFields) => GroupFields) => {
    groups.set(suffix, next(groups.get(suffix) ?? emptyGroup(suffix)));
  };
  for (const [key, value] of query) {
    const [, name, suffix = ''] = /^(resources|required|member_of|in_tree)(.*)$/.exec(key) ?? [];
    if (name === 'resources') {
      const resources = splitList(value).map((each): AmountField => {
        const [before = '', amount = ''] = each.split(':');
        return { name: before, amount };
      });
      change(suffix, (group) => ({ ...group, resources: [...group.resources, ...resources] }));
    }
    if (name === 'required') {
      const traits = value.startsWith('in:') ? [value] : splitList(value);
      change(suffix, (group) => ({ ...group, required: [...group.required, ...traits] }));
    }
    if (name === 'member_of') change(suffix, (group) => ({ ...group, member_of: [...group.member_of, value] }));
    if (name === 'in_tree') change(suffix, (group) => ({ ...group, in_tree: value }));
  }
  return {
    groups: [...groups.values()],
    group_policy: query.get('group_policy') ?? '',
    root_required: splitList(query.get('root_required') ?? ''),
    same_subtree: query.getAll('same_subtree'),
    order: query.get('order') ?? '',
    tree: query.get('tree') ?? '',
  };
}

/** The form with numbers where a user wrote amounts with units. */
export const withNumbers = (fields: QueryFields): QueryFields => ({
  ...fields,
  groups: fields.groups.map((group) => ({
    ...group,
    resources: group.resources.map(({ name, amount }) => ({
      name,
      amount: String(amountFrom(name, amount) ?? amount),
    })),
  })),
});

/** The form as the query of a URL. */
export function searchOf(fields: QueryFields): URLSearchParams {
  const query = new URLSearchParams();
  for (const { suffix, resources, required, member_of, in_tree } of fields.groups) {
    const amounts = resources.filter(({ name }) => name !== '').map(({ name, amount }) => `${name}:${amount || '1'}`);
    if (amounts.length > 0) query.append(`resources${suffix}`, amounts.join(','));
    const plain = required.filter((trait) => !trait.startsWith('in:'));
    if (plain.length > 0) query.append(`required${suffix}`, plain.join(','));
    for (const anyOf of required.filter((trait) => trait.startsWith('in:'))) query.append(`required${suffix}`, anyOf);
    for (const aggregate of member_of) query.append(`member_of${suffix}`, aggregate);
    if (in_tree !== '') query.append(`in_tree${suffix}`, in_tree);
  }
  if (fields.groups.length > 1) query.append('group_policy', fields.group_policy || 'none');
  if (fields.root_required.length > 0) query.append('root_required', fields.root_required.join(','));
  for (const suffixes of fields.same_subtree) query.append('same_subtree', suffixes);
  if (fields.order !== '') query.append('order', fields.order);
  if (fields.tree !== '') query.append('tree', fields.tree);
  return query;
}

/** The parameters of the form, and the others of the views with a query; `limit` does not change where it fits. */
const ofForm = /^((resources|required|member_of|in_tree).*|group_policy|root_required|same_subtree|order|tree)$/;
const ofViews = /^(class|of|group|search|chosen|as|sort|page|limit)$/;

/** A query of a URL without what the form has. */
export const withoutQuery = (query: URLSearchParams): URLSearchParams =>
  new URLSearchParams([...query].filter(([name]) => !ofForm.test(name)));

/** What the form takes once. */
const once = /^(in_tree.*|group_policy|root_required|order)$/;

/** The conditions of a URL that the form lacks: such as `apart_from`, `second order`, or `group_policy=zzz`. */
export const leftOutOf = (query: URLSearchParams): readonly string[] =>
  [...new Set(query.keys())].flatMap((name) => {
    if (!ofForm.test(name) && !ofViews.test(name)) return [name];
    const value = query.get(name) ?? '';
    if (name === 'group_policy' && !/^(none|isolate)?$/.test(value)) return [`${name}=${value}`];
    return once.test(name) && query.getAll(name).length > 1 ? [`second ${name}`] : [];
  });

/** The conditions of the form, each as a text: `resources_1=PGPU:1`. */
export const conditionTexts = (fields: QueryFields): readonly string[] =>
  [...searchOf({ ...fields, tree: '', order: '' })].map(([name, value]) => `${name}=${value}`);

/** The classes of the query. */
export const classesOf = (fields: QueryFields): readonly string[] => [
  ...new Set(fields.groups.flatMap(({ resources }) => resources.map(({ name }) => name)).filter((name) => name !== '')),
];

/** The query that the client sends; undefined for an empty form. */
export function candidateQueryOf(fields: QueryFields): Omit<CandidateQuery, 'limit'> | undefined {
  const filterOf = ({ resources, required, member_of, in_tree }: GroupFields): ProviderFilter => ({
    // The service answers with an error if an amount is no number.
    resources: Object.fromEntries(
      resources.filter(({ name }) => name !== '').map(({ name, amount }) => [name, Number(amount || '1')]),
    ),
    required,
    member_of,
    in_tree: in_tree === '' ? undefined : in_tree,
  });
  const [plain = emptyGroup(''), ...granular] = fields.groups;
  if (fields.groups.every(({ resources }) => resources.every(({ name }) => name === ''))) return undefined;
  return {
    ...filterOf(plain),
    groups: Object.fromEntries(granular.map((group) => [group.suffix, filterOf(group)])),
    group_policy: granular.length === 0 ? undefined : fields.group_policy === 'isolate' ? 'isolate' : 'none',
    root_required: fields.root_required,
    same_subtree: fields.same_subtree.map(splitList),
    // The service names a key that it does not know.
    order: fields.order === '' ? undefined : (splitList(fields.order) as readonly OrderKey[]),
  };
}

/**
 * The form without one condition of an explanation; undefined if it has no such condition, or would be empty. A group is removed as a whole
 * with its only class, since the service refuses a group without resources.
 *
 * @param parameter of the query, such as `resources_1`
 * @param value one class with its amount, one trait, or what else the parameter has
 */
export function withoutCondition(fields: QueryFields, parameter: string, value: string): QueryFields | undefined {
  const [, name, suffix = ''] = /^(resources|required|member_of|in_tree)(.*)$/.exec(parameter) ?? [];
  const others = (all: readonly string[], key: string) =>
    key === parameter ? all.filter((one) => one !== value) : all;
  const parts = fields.groups.map((group): GroupFields => {
    if (name === undefined || group.suffix !== suffix) return group;
    const isOther = ({ name: className, amount }: AmountField) => `${className}:${amount || '1'}` !== value;
    const resources = name === 'resources' ? group.resources.filter(isOther) : group.resources;
    if (name === 'resources' && resources.length === 0) return emptyGroup(suffix);
    return {
      suffix,
      resources,
      required: others(group.required, `required${suffix}`),
      member_of: others(group.member_of, `member_of${suffix}`),
      in_tree: name === 'in_tree' ? '' : group.in_tree,
    };
  });
  const groups = parts.filter((group) => group.suffix === '' || group.resources.length > 0);
  const suffixes = new Set(groups.map((group) => group.suffix));
  const next: QueryFields = {
    ...fields,
    groups,
    group_policy: parameter === 'group_policy' ? '' : fields.group_policy,
    root_required: others(fields.root_required, 'root_required'),
    same_subtree: others(fields.same_subtree, 'same_subtree')
      .map((list) =>
        splitList(list)
          .filter((each) => suffixes.has(each))
          .join(),
      )
      .filter((list) => list !== ''),
  };
  const isChanged = searchOf(next).toString() !== searchOf(fields).toString();
  return isChanged && candidateQueryOf(next) !== undefined ? next : undefined;
}

/** How many classes are suggested. */
const mostSuggested = 6;

/** Suggestions for the name of a class that does not exist: `PGPU` and `VGPU` for `GPU`, and names with a similar spelling. */
export function suggestionsFor(written: string, classes: readonly string[]): readonly string[] {
  const name = written.toUpperCase();
  const containing = classes.filter((each) => each.includes(name) || (each.length > 3 && name.includes(each)));
  const near = nearName(name, classes);
  return [...new Set([...(near === undefined ? [] : [near]), ...containing.toSorted()])].slice(0, mostSuggested);
}

/** The form as the arguments of `placement candidate why`. */
export function argumentsOf(fields: QueryFields): string {
  const option = (name: string, value: string): readonly string[] => (value === '' ? [] : [name, shellWord(value)]);
  const groups = fields.groups.flatMap(({ suffix, resources, required, member_of, in_tree }) => {
    const amounts = resources.filter(({ name }) => name !== '').map(({ name, amount }) => `${name}=${amount || '1'}`);
    return [
      ...option('--group', suffix),
      ...amounts.flatMap((each) => (suffix === '' ? [shellWord(each)] : option('--resource', each))),
      ...required.flatMap((trait) => option('--required', trait)),
      ...member_of.flatMap((aggregate) => option('--member-of', aggregate)),
      ...option('--in-tree', in_tree),
    ];
  });
  return [
    ...groups,
    ...(fields.groups.length > 1 ? option('--group-policy', fields.group_policy || 'none') : []),
    ...fields.root_required.flatMap((trait) => option('--root-required', trait)),
    ...fields.same_subtree.flatMap((suffixes) => option('--same-subtree', suffixes)),
    ...option('--host', fields.tree),
  ].join(' ');
}

import type { Random } from '../races/random.ts';
import { classes, number, numbers, some, texts, traits, uuid } from './words.ts';

/* Queries and JSON bodies of hostile requests. */

/** A query string, from parameters of all endpoints. */
export function queryText(random: Random): string {
  const suffix = random.percent(60) ? '' : random.pick(['1', '_A', '_NET', '-', random.pick(texts)]);
  const resources = () => some(random, 3, () => `${random.pick(classes)}:${number(random)}`).join(',');
  const parameter = () =>
    random.pick([
      `resources${suffix}=${resources()}`,
      `resources=VCPU:${number(random)}`,
      `required${suffix}=${some(random, 3, () => random.pick(traits)).join(',')}`,
      `member_of${suffix}=${random.pick(['', 'in:', '!', '!in:'])}${uuid(random)},${uuid(random)}`,
      `in_tree${suffix}=${uuid(random)}`,
      `limit=${number(random)}`,
      `group_policy=${random.pick(['none', 'isolate', 'x'])}`,
      `same_subtree=${some(random, 3, () => random.pick(['_A', '_NET', '_X', ''])).join(',')}`,
      `root_required=${random.pick(traits)}`,
      `order=${some(random, 3, () => random.pick(['free:VCPU', '-free:VCPU', 'prefer:CUSTOM_T', 'random', 'free:', ...texts])).join(',')}`,
      `with=${uuid(random)}`,
      `apart_from=${uuid(random)}`,
      `name=${random.pick(['in:a,b', 'startswith:CUSTOM_', 'startswith:%', ...texts])}`,
      `uuid=${uuid(random)}`,
      `marker=${uuid(random)}`,
      `project_id=${random.pick(texts)}`,
      `user_id=${random.pick(texts)}`,
      `consumer_type=${random.pick(['INSTANCE', 'all', 'unknown', ...texts])}`,
      `resource_provider=${uuid(random)}`,
      `since=${random.pick(texts)}`,
      `parts=${random.pick(['inventories', 'usages,traits', ...texts])}`,
      `max=${number(random)}`,
      `top=${number(random)}`,
      `nearest=${number(random)}`,
      `tree=${uuid(random)}`,
      `associated=${random.pick(['true', ...texts])}`,
      `${random.pick(texts)}=${random.pick(texts)}`,
      random.pick(['&', '=', '%', '%zz', '+', ';', '#']),
    ]);
  return Array.from({ length: 1 + random.below(random.percent(3) ? 60 : 5) }, parameter).join('&');
}

/** JSON as text, mostly of the form that a path takes. */
export function bodyText(random: Random, route: string): string {
  if (random.percent(4))
    return random.pick(['', '{', ']', 'nul', '"', '{}{}', '\uFEFF{}', '[1,]', '{"a":1,"a":2}', ...numbers]);
  const allocations = () =>
    object(
      some(random, 3, () => [
        uuid(random),
        object([['resources', amounts(random)], ...some(random, 1, () => ['generation', value(random)] as const)]),
      ]),
    );
  const claim = () =>
    object([
      random.percent(75) ? ['allocations', allocations()] : ['candidates', JSON.stringify(queryText(random))],
      ['project_id', random.percent(96) ? '"p"' : value(random)],
      ['user_id', random.percent(96) ? '"u"' : value(random)],
      ['consumer_generation', random.percent(60) ? 'null' : random.percent(90) ? number(random) : value(random)],
      ['consumer_type', random.percent(96) ? '"INSTANCE"' : value(random)],
      ...some(
        random,
        random.percent(10) ? 1 : 0,
        () => ['mappings', object([['', `[${JSON.stringify(uuid(random))}]`]])] as const,
      ),
      ...some(random, 1, () => ['dry_run', random.percent(80) ? 'true' : value(random)] as const),
      ...some(random, random.percent(10) ? 1 : 0, () => ['expires_in', number(random)] as const),
    ]);
  const inventory = () =>
    object(
      [
        'total',
        'reserved',
        'min_unit',
        'max_unit',
        'step_size',
        'allocation_ratio',
        'resource_class',
        'resource_provider_generation',
      ].map((name) => [name, random.percent(95) ? number(random) : value(random)]),
    );
  const inventories = () => object(some(random, 3, () => [random.pick(classes), inventory()]));
  const generation = ['resource_provider_generation', random.percent(95) ? number(random) : value(random)] as const;
  const forms: readonly (readonly [RegExp, () => string])[] = [
    [/^\/allocations\/|\/term$/, claim],
    [/^\/allocations/, () => object(some(random, 3, () => [uuid(random), claim()]))],
    [/^\/consumers/, claim],
    [/\/inventories$/, () => (random.percent(70) ? object([generation, ['inventories', inventories()]]) : inventory())],
    [/\/inventories\//, inventory],
    [
      /\/traits/,
      () => object([generation, ['traits', `[${some(random, 4, () => JSON.stringify(random.pick(traits)))}]`]]),
    ],
    [
      /\/aggregates/,
      () => object([generation, ['aggregates', `[${some(random, 4, () => JSON.stringify(uuid(random)))}]`]]),
    ],
    [
      /^\/resource_providers/,
      () =>
        object([
          ['name', value(random)],
          ...some(
            random,
            2,
            () => [random.pick(['uuid', 'parent_provider_uuid']), JSON.stringify(uuid(random))] as const,
          ),
        ]),
    ],
    [/^\/resource_classes/, () => object([['name', '"CUSTOM_A"']])],
    [
      /^\/reshaper/,
      () =>
        object([
          [
            'inventories',
            object(some(random, 2, () => [uuid(random), object([generation, ['inventories', inventories()]])])),
          ],
          ['allocations', object(some(random, 2, () => [uuid(random), claim()]))],
        ]),
    ],
    [/^/, () => value(random)],
  ];
  const fitting = forms.find(([pattern]) => pattern.test(route));
  return (random.percent(92) ? (fitting ?? random.pick(forms)) : random.pick(forms))[1]();
}

const amounts = (random: Random): string => object(some(random, 3, () => [random.pick(classes), number(random)]));

/** An object whose values are JSON already. */
const object = (members: readonly (readonly [string, string])[]): string =>
  `{${members.map(([name, json]) => `${JSON.stringify(name)}: ${json}`)}}`;

/** Any JSON: deep, wide, or of another type. */
function value(random: Random): string {
  if (random.percent(3)) {
    const levels = 1 + random.below(3000);
    return random.percent(50)
      ? '['.repeat(levels) + ']'.repeat(levels)
      : `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  }
  if (random.percent(3)) return `[${Array.from({ length: random.below(3000) }, () => number(random))}]`;
  return random.pick([
    () => number(random),
    () => JSON.stringify(random.pick(texts)),
    () => random.pick(['null', 'true', 'false', '{}', '[]', '[null]', '{"": null}', '{"__proto__": {"a": 1}}']),
    () => JSON.stringify(uuid(random)),
  ])();
}

/** What a claim adds to the usages of projects, and the limits that it comes nearer to: computed a second time, plainly. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Holding, limitGuards, projectUsageChanges } from '../../src/claims/limits.ts';
import { limitInForce, type ProjectLimits } from '../../src/placement/limits.ts';
import { type Random, randomFrom, seedFor } from '../races/random.ts';

const classes = ['VCPU', 'PGPU', 'DISK_GB'];
const types = ['JOB', 'BUILD', 'MIGRATION', null];
const projects = ['a', 'b', 'old'];
const options = { uncountedTypes: ['MIGRATION'], incompleteProject: 'old' };

const names = new Map(
  classes.map((name, id) => [name, { id, name, createdAtSeconds: undefined, updatedAtSeconds: undefined }]),
);
const fleetClasses = { byName: names, byId: new Map([...names.values()].map((each) => [each.id, each])) };

/** What a project has of a class, or how many of its consumers of a type have something. */
function plainly(holdings: readonly Holding[], project: string, of: { classId: number } | { type: string }): number {
  const own = holdings.filter((each) => (each.project ?? 'old') === project && each.amounts.length > 0);
  const counted = own.filter(({ consumerType }) => consumerType !== 'MIGRATION');
  if ('type' in of) {
    return counted.filter(({ consumerType }) => of.type === 'all' || (consumerType ?? 'unknown') === of.type).length;
  }
  return counted
    .flatMap(({ amounts }) => amounts)
    .reduce((sum, { classId, used }) => sum + (classId === of.classId ? used : 0), 0);
}

/** What up to three consumers have. */
const randomHoldings = (random: Random): readonly Holding[] =>
  Array.from({ length: random.below(4) }, () => ({
    project: random.pick([...projects, null]),
    consumerType: random.pick(types),
    amounts: Array.from({ length: random.below(3) }, () => ({ classId: random.below(3), used: 1 + random.below(4) })),
  }));

test('guards are of the limits in force that a claim raises, each by how much', (t) => {
  const random = randomFrom(seedFor(t));
  for (let round = 0; round < 3_000; round += 1) {
    const [before, after] = [randomHoldings(random), randomHoldings(random)];
    const values = () => ({
      resources: new Map(
        classes.filter(() => random.percent(50)).map((name) => [name, random.pick([null, random.below(9)])]),
      ),
      consumers: new Map(
        ['all', 'JOB', 'BUILD', 'unknown', 'MIGRATION']
          .filter(() => random.percent(40))
          .map((name) => [name, random.below(5)]),
      ),
    });
    const limits: ProjectLimits = {
      isCounting: true,
      defaults: values(),
      projects: new Map(projects.filter(() => random.percent(60)).map((project) => [project, values()])),
    };
    const guards = limitGuards({ limits, classes: fleetClasses }, projectUsageChanges(before, after), options);
    const expected = projects.flatMap((project) => [
      ...classes.flatMap((name, classId) => {
        const raise = plainly(after, project, { classId }) - plainly(before, project, { classId });
        const found = limitInForce(limits, project, 'resources', name);
        return raise > 0 && found !== undefined ? [`${project} ${name} ${raise} ${found.limit}`] : [];
      }),
      ...['all', 'JOB', 'BUILD', 'unknown'].flatMap((type) => {
        const raise = plainly(after, project, { type }) - plainly(before, project, { type });
        const found = limitInForce(limits, project, 'consumers', type);
        return raise > 0 && found !== undefined ? [`${project} ${type} ${raise} ${found.limit}`] : [];
      }),
    ]);
    const described = guards.map(({ project, classId, consumerType, raise, limit, hasOld }) => {
      assert.equal(hasOld, project === 'old');
      return `${project} ${classId === null ? (consumerType ?? 'all') : classes[classId]} ${raise} ${limit}`;
    });
    assert.deepEqual(described.toSorted(), expected.toSorted());
  }
});

test('changes of usages add up to the usages afterwards', (t) => {
  const random = randomFrom(seedFor(t));
  for (let round = 0; round < 1_000; round += 1) {
    const [first, second] = [randomHoldings(random), randomHoldings(random)];
    const sums = new Map<string, number>();
    for (const each of [...projectUsageChanges([], first), ...projectUsageChanges(first, second)]) {
      assert.notEqual(each.amount, 0);
      const key = JSON.stringify([each.project, each.consumerType, each.classId]);
      sums.set(key, (sums.get(key) ?? 0) + each.amount);
    }
    const direct = projectUsageChanges([], second).map((each) => [
      JSON.stringify([each.project, each.consumerType, each.classId]),
      each.amount,
    ]);
    assert.deepEqual(new Map([...sums].filter(([, sum]) => sum !== 0)), new Map(direct as [string, number][]));
  }
});

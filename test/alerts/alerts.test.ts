/** The alerts of deploy/prometheus/alerts.yaml, by Debian's promtool, with what real services said during their outages. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { placementCommand } from '../../src/cli/program.ts';
import { hasPrograms } from '../support/debian_packages.ts';
import { inFolder } from '../support/in_folder.ts';
import { readRecording } from './recording.ts';
import { alertRules, ruleOf, rulesFile } from './rules.ts';
import { scenes } from './scenes.ts';

const promtool = (...args: readonly string[]) => spawnSync('promtool', args, { encoding: 'utf8' });
const missing = hasPrograms(() => promtool('--version').status === 0, ['prometheus'])
  ? false
  : 'promtool is not installed';

const recording = await readRecording();

test('promtool finds the rules right', { skip: missing }, () => {
  const { status, stdout, stderr } = promtool('check', 'rules', rulesFile);
  assert.equal(status, 0, stdout + stderr);
});

test('each alert names the problem and the remedy, and fires in a recorded outage', () => {
  const fired = new Set(
    Object.values(scenes).flatMap(({ expected }) => expected.flatMap(({ firing }) => Object.keys(firing))),
  );
  for (const { alert, labels, annotations } of alertRules) {
    assert.match(alert, /^Placement[A-Z]/);
    assert.ok(['critical', 'warning'].includes(labels.severity ?? ''), alert);
    assert.match(annotations.summary ?? '', /\.$/, alert);
    assert.ok((annotations.action ?? '').length > 40, alert);
    assert.ok(fired.has(alert), `${alert} fires in a scene`);
  }
  assert.deepEqual(Object.keys(recording.scenes).toSorted(), Object.keys(scenes).toSorted());
  assert.match(recording.recorded, /^\d{4}-\d\d-\d\d$/);
});

test('the commands that alerts name exist', async () => {
  const named = alertRules.flatMap(({ annotations }) => [
    ...(annotations.action ?? '').matchAll(/"placement ([a-z ]+)/g),
  ]);
  assert.ok(named.length >= 4);
  for (const [text, words = ''] of named) {
    const parts = words.trim().split(' ');
    let command: Command | undefined = await placementCommand(parts);
    for (const word of parts) command = command?.commands.find((each) => each.name() === word);
    assert.ok(command, text);
  }
});

for (const [name, { expected }] of Object.entries(scenes)) {
  test(`promtool: in the outage "${name}" these alerts fire, and no other ones`, { skip: missing }, async () => {
    const series = Object.entries(recording.scenes[name] ?? {}).map(([each, values]) => ({
      series: each,
      values: values.map((value) => value ?? '_').join(' '),
    }));
    assert.ok(series.length > 10);
    const tests = {
      rule_files: [rulesFile],
      evaluation_interval: `${recording.intervalSeconds}s`,
      tests: [
        {
          name,
          interval: `${recording.intervalSeconds}s`,
          input_series: series,
          alert_rule_test: expected.flatMap(({ atSeconds, firing }) =>
            alertRules.map(({ alert }) => ({
              eval_time: `${atSeconds}s`,
              alertname: alert,
              exp_alerts: alert in firing ? [expectedAlert(alert, firing[alert] ?? {})] : [],
            })),
          ),
        },
      ],
    };
    await inFolder(async (folder) => {
      const file = path.join(folder, 'tests.yaml');
      await writeFile(file, stringify(tests));
      const { status, stdout, stderr } = promtool('test', 'rules', file);
      assert.equal(status, 0, stdout + stderr);
    });
  });
}

/** An alert as promtool compares it, with its texts. */
function expectedAlert(alert: string, labels: Readonly<Record<string, string>>) {
  const { labels: ofRule, annotations } = ruleOf(alert);
  const filled = Object.entries(annotations).map(([key, text]) => [
    key,
    text.replace(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => labels[label] ?? ''),
  ]);
  return { exp_labels: { ...labels, ...ofRule }, exp_annotations: Object.fromEntries(filled) };
}

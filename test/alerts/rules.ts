import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';

/** An alert of deploy/prometheus/alerts.yaml. */
type AlertRule = {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
};

export const rulesFile = path.join(import.meta.dirname, '..', '..', 'deploy', 'prometheus', 'alerts.yaml');

// promtool checks that the file has this form.
const file = parse(readFileSync(rulesFile, 'utf8')) as {
  readonly groups: readonly { readonly rules: readonly AlertRule[] }[];
};

/** The alerts, in their order. */
export const alertRules: readonly AlertRule[] = file.groups.flatMap(({ rules }) => rules);

/** @throws Error if there is no alert of this name */
export function ruleOf(name: string): AlertRule {
  const rule = alertRules.find(({ alert }) => alert === name);
  if (rule === undefined) throw new Error(`alerts.yaml has no alert ${name}.`);
  return rule;
}

/** docs/configuration.md is made of the table of options. `UPDATE=1 npm test -- test/documents/configuration` writes it. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { groups, memberOptions, type Option, options, variableOf } from '../../src/config/config.ts';

const file = path.join(import.meta.dirname, '..', '..', 'docs', 'configuration.md');

const escaped = (text: string): string => text.replaceAll('|', '\\|');

function defaultOf({ default: value }: Option): string {
  if (value === undefined) return 'none';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map((each) => `\`${each}\``).join(', ');
  return `\`${escaped(String(value))}\``;
}

/** What a value may be, where that says more than the purpose. */
const expectedOf = ({ type: { expected } }: Option): string => (expected === 'a text' ? '' : ` (${escaped(expected)})`);

const row = (option: Option): string =>
  `| \`${option.name}\` | ${defaultOf(option)} | ${escaped(option.help)}${expectedOf(option)} |\n`;

const section = (group: string): string => {
  const members = options.filter((option) => option.group === group);
  const [first] = members;
  const example = first === undefined ? '' : `\`${variableOf(first)}\``;
  return `## [${group}]

Variables of the environment: ${example} and so on.

| option | default | |
| --- | --- | --- |
${members.map(row).join('')}`;
};

const page = `# Configuration

No configuration is needed: without one the service uses an embedded database in \`./placement-data\`, and takes the token for the user
(\`[api] auth_strategy = noauth2\`). **As soon as a file or a variable sets any option, \`auth_strategy\` is \`keystone\`**, as in OpenStack: name it
where you want it otherwise.

- **Files.** \`placement-api --config-file placement.conf\`, else \`/etc/placement/placement.conf\`: the file of an OpenStack Placement, as it is.
- **Variables.** \`OS_<SECTION>__<OPTION>\` in capitals sets an option, such as \`OS_PLACEMENT_DATABASE__CONNECTION\`; it counts more than a file. \`DATABASE_URL\` is
  \`[placement_database] connection\` where nothing else sets it. \`DEFAULT_OS_<SECTION>__<OPTION>\` is for images and packages: another default, which files and
  all else count more than.
- **Arguments** such as \`--port\` count more than both.
- **Mistakes.** A value that is wrong ends the start, with the file, the line and what is allowed. Sections and options of other libraries in a
  file are ignored; names that are nearly right, and every variable \`OS_..__..\` that is no option, are warned about.
- \`placement-api --show-config\` prints every option: its purpose, its value, and where the value comes from.

This page is made of the table of options in \`src/config/option_table.ts\`. Defaults are those of the table; \`auth_strategy\` without any
configuration is above.

${[...groups].map(section).join('\n')}
## [jwt:NAME]

An issuer of JSON Web Tokens, for \`[api] auth_strategy = tokens\`; a section for each. No variables of the environment.

| option | default | |
| --- | --- | --- |
${memberOptions(['jwt:NAME']).map(row).join('')}`;

test('docs/configuration.md has every option of the table', async () => {
  if (process.env.UPDATE !== undefined) await writeFile(file, page);
  assert.equal(await readFile(file, 'utf8'), page);
});

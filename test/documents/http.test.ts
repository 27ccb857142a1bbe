/** The blocks of the documents for people with curl and Python do what the documents say. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { teamsPolicy } from '../../src/access/policy/teams.ts';
import { project } from '../client/documentation.ts';
import { startServer, type TestServer } from '../client/servers.ts';
import { inFolder } from '../support/in_folder.ts';
import type { ConfigOverrides } from '../support/services.ts';
import { runBlocks, withoutPython } from './blocks.ts';

async function onService(use: (server: TestServer) => Promise<void>, overrides: ConfigOverrides = {}): Promise<void> {
  const server = await startServer({}, overrides);
  try {
    await use(server);
  } finally {
    await server.close();
  }
}

for (const document of ['README.md', 'docs/http.md', 'docs/limits.md', 'docs/lost_updates.md']) {
  test(`the blocks of ${document} print what it says`, { skip: withoutPython }, () =>
    onService(async ({ url }) => {
      assert.ok((await runBlocks(document, url)) >= 2);
    }),
  );
}

test(
  'the blocks of docs/recipes.md print what it says, that of the urgent job with a token of a member',
  { skip: withoutPython },
  () =>
    inFolder(async (folder) => {
      const policyFile = path.join(folder, 'teams.yaml');
      await writeFile(policyFile, teamsPolicy());
      let edited = 0;
      const asMember = (code: string): string => {
        if (!code.includes('urgent = ')) return code;
        edited += 1;
        return [
          `api.headers.update({'X-Auth-Token': 'ada:ci', 'X-Roles': 'member'})`,
          code,
          `api.headers.update({'X-Auth-Token': 'admin', 'X-Roles': None})`,
        ].join('\n');
      };
      await onService(
        async ({ url }) => {
          assert.ok((await runBlocks('docs/recipes.md', url, project, asMember)) >= 2);
          assert.equal(edited, 1);
        },
        { osloPolicy: { policyFile } },
      );
    }),
);

test(
  'the blocks of docs/fleet_files.md print what it says, in a folder where they write their file',
  { skip: withoutPython },
  () =>
    inFolder((folder) =>
      onService(async ({ url }) => {
        assert.ok((await runBlocks('docs/fleet_files.md', url, folder)) >= 6);
      }),
    ),
);

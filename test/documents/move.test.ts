/** The program of docs/operations.md that moves consumers and limits from the embedded database to PostgreSQL, and back. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { listen } from '../../src/http/server/listen.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { inFolder } from '../support/in_folder.ts';
import { accepted, at, makeProvider, newClaim, newestVersion, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const version = `placement ${newestVersion}`;
const host = randomUUID();
const makeHost = (service: PlacementService) => makeProvider(requestsTo(service), host, { VCPU: { total: 9000 } });

/** What is moved, as clients see it. */
async function shown(service: PlacementService, consumers: readonly string[]) {
  const send = requestsTo(service, version);
  const claims = await Promise.all(
    consumers.map(async (consumer) => {
      const { json } = accepted(await send('GET', `/allocations/${consumer}`));
      const [resources, name, project, type] = [
        at(json, 'allocations', host, 'resources'),
        at(json, 'name'),
        at(json, 'project_id'),
        at(json, 'consumer_type'),
      ];
      const end = at(json, 'expires_at');
      return {
        resources,
        name,
        project,
        type,
        endsWithin: end === null ? null : Math.round((Date.parse(String(end)) - Date.now()) / 600_000),
      };
    }),
  );
  const limits = accepted(await send('GET', '/limits')).json;
  return { claims, limits, defaults: accepted(await send('GET', '/default_limits')).json };
}

test('what consumers have, and the limits, are moved there and back by the program of the document', async () => {
  await inFolder(async (folder) => {
    const program = path.join(folder, 'move.mjs');
    const document = await readFile(path.join(import.meta.dirname, '..', '..', 'docs', 'operations.md'), 'utf8');
    const code = /```js\n(\/\/ move\.mjs.*?)^```/ms.exec(document)?.[1] ?? '';
    assert.match(code, /limit=1000/);
    await writeFile(program, code.replace('limit=1000', 'limit=10')); // in several pages
    const move = async (from: PlacementService, to: PlacementService) => {
      const servers = await Promise.all(
        [from, to].map(({ app }) => listen(app, { host: '127.0.0.1', port: 0, drainMs: 100 })),
      );
      const env = { PATH: process.env.PATH, OS_TOKEN: 'admin' };
      await promisify(execFile)(process.execPath, [program, ...servers.map(({ url }) => url)], { env });
      await Promise.all(servers.map(({ close }) => close()));
    };
    await withTestService('embedded', {}, async (first) => {
      await makeHost(first);
      const send = requestsTo(first, version);
      const consumers = Array.from({ length: 25 }, () => randomUUID());
      for (const [index, consumer] of consumers.entries()) {
        const term = index === 0 ? { expires_in: 3600 } : {};
        const claim = { ...newClaim({ [host]: { VCPU: 1 + (index % 3) } }), name: `job-${index}`, ...term };
        accepted(await send('PUT', `/allocations/${consumer}`, claim));
      }
      accepted(await send('PUT', '/limits/a%2Fb', { resources: { VCPU: 4 }, generation: null }));
      accepted(await send('PUT', '/default_limits', { resources: { VCPU: 8000 }, generation: null }));
      const moved = await shown(first, consumers);
      await withTestService('postgresql', {}, async (second) => {
        await makeHost(second);
        await move(first, second);
        assert.deepEqual(await shown(second, consumers), moved);
        await withTestService('embedded', {}, async (third) => {
          await makeHost(third);
          await move(second, third);
          assert.deepEqual(await shown(third, consumers), moved);
        });
      });
    });
  });
});

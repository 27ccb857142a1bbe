import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { pino } from 'pino';
import { openService } from '../../src/start/service.ts';
import { anyEngine, freshDatabase } from '../support/engines.ts';
import { accepted, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';

test('the log has the old owner, the new owner and the user of a change, unless it was refused', async () => {
  const lines: string[] = [];
  const logger = pino({}, { write: (line: string) => void lines.push(line) });
  const database = await freshDatabase(anyEngine);
  const config = testConfig({ placementDatabase: database.config });
  const service = await openService(config, { logger });
  try {
    const send = requestsTo(service, 'placement 2.2');
    const [host, consumer] = [randomUUID(), randomUUID()];
    await makeProvider(send, host, { VCPU: { total: 8 } });
    accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 1 } })));
    const owner = { project_id: 'q\nq', user_id: 'v', consumer_type: 'unknown', consumer_generation: 1 };
    accepted(await send('PUT', `/consumers/${consumer}`, owner));
    assert.equal((await send('PUT', `/consumers/${consumer}`, owner)).status, 409);
    const logged = lines
      .map((line): { readonly level: number; readonly msg?: string } => JSON.parse(line))
      .filter(({ msg = '' }) => msg.startsWith('Consumer '));
    assert.deepEqual(
      logged.map(({ level, msg }) => [level, msg]),
      [
        [
          30,
          `Consumer ${consumer} was of project p, user u, type INSTANCE, and is of project q\nq, user v, type INSTANCE ` +
            'from now on, as user admin asked.',
        ],
      ],
    );
  } finally {
    await service.close();
    await database.drop();
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerTo } from '../../src/api/allocations/claim_requests.ts';
import { ApiError } from '../../src/request/errors.ts';

test('the refusal of a dry run is the refusal of the claim with one more header', async () => {
  const refusal = new ApiError(409, 'in the words of upstream', {
    code: 'placement.capacity_exceeded',
    headers: { 'retry-after': '1' },
    vary: false,
    sentence: 'A plain sentence.',
  });
  const refused = () => Promise.reject(refusal);
  await assert.rejects(answerTo(false, refused), refusal);
  await assert.rejects(answerTo(true, refused), {
    ...refusal,
    message: refusal.message,
    headers: { ...refusal.headers, 'placement-dry-run': 'true' },
  });
});

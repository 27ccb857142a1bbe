import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, errorCodes, withErrorHeaders, withHint } from '../../src/request/errors.ts';

test('an error with a hint or with more headers is otherwise the same error', () => {
  const options = {
    code: errorCodes.duplicateName,
    headers: { 'retry-after': '5' },
    vary: false,
    sentence: 'It is late.',
    versions: { oldest: 1000, newest: 1039 },
  };
  const error = new ApiError(409, 'Late.', options);
  const partsOf = ({ status, message, code, headers, vary, sentence, versions }: ApiError) => ({
    status,
    message,
    ...{ code, headers, vary, sentence, versions },
  });
  const same = { status: 409, message: 'Late.', ...options };
  assert.deepEqual(partsOf(withHint(error, 'Hurry.')), { ...same, sentence: 'It is late. Hurry.' });
  const both = { ...same, message: 'Late. Hurry.', sentence: 'It is late. Hurry.' };
  assert.deepEqual(partsOf(withHint(error, 'Hurry.', { inMessage: true })), both);
  assert.equal(withHint(new ApiError(400, 'Late.'), 'Hurry.', { inMessage: true }).sentence, undefined);
  const headers = { 'retry-after': '5', 'placement-dry-run': 'true' };
  assert.deepEqual(partsOf(withErrorHeaders(error, { 'placement-dry-run': 'true' })), { ...same, headers });
});

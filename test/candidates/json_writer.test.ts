/** Answers that are written in turns. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { jsonWriter, takeBackMemory } from '../../src/rest/json_body.ts';

test('the text of one answer does not get into another answer that was paused', () => {
  const writers = 3;
  const step = fc.record({
    writer: fc.nat({ max: writers - 1 }),
    kind: fc.constantFrom('text', 'bytes', 'take', 'sent'),
    length: fc.constantFrom(1, 20, 5000, 300_000),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const each = Array.from({ length: writers }, () => ({
        json: jsonWriter(),
        written: '',
        taken: [] as { readonly chunk: Uint8Array<ArrayBuffer>; readonly text: string }[],
      }));
      for (const [index, { writer, kind, length }] of steps.entries()) {
        const { json, written, taken } = each[writer] ?? assert.fail();
        const text = String.fromCharCode(0x61 + (index % 26)).repeat(length);
        if (kind === 'take') {
          taken.push({ chunk: json.take(), text: written });
          Object.assign(each[writer] ?? {}, { written: '' });
        } else if (kind === 'sent') {
          for (const { chunk } of taken.splice(0)) takeBackMemory(chunk);
        } else {
          if (kind === 'text') json.text(text);
          else json.bytes(Buffer.from(`--${text}`), 2);
          Object.assign(each[writer] ?? {}, { written: written + text });
        }
        for (const { taken: chunks } of each) {
          for (const { chunk, text: expected } of chunks) {
            assert.ok(
              Buffer.from(chunk).equals(Buffer.from(expected)),
              'a chunk stays as it is until it is given back',
            );
          }
        }
      }
      for (const { json, written } of each) assert.ok(Buffer.from(json.take()).equals(Buffer.from(written)));
    }),
    { numRuns: 300 },
  );
});

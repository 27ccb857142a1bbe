/**
 * A list of numbers or of texts as PostgreSQL reads it. node-postgres would make the same text, but with two searches in each element:
 * that is a twentieth of the CPU time of a claim for a hundred consumers.
 *
 * @returns the list as it is where it contains something else, or a text that must be escaped
 */
export function arrayText(values: readonly unknown[]): string | readonly unknown[] {
  const [first] = values;
  if (typeof first === 'number') return values.every(isNumber) ? `{${values.join(',')}}` : values;
  if (typeof first === 'string') return values.every(isPlainText) ? `{"${values.join('","')}"}` : values;
  return values;
}

const isNumber = (value: unknown): boolean => typeof value === 'number';

const isPlainText = (value: unknown): boolean =>
  typeof value === 'string' && !value.includes('"') && !value.includes('\\');

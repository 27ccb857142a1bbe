import type { Tables } from '../../../db/schema/tables.ts';
import type { ColumnKind } from './copied_tables.ts';

/** The SQL expression that reads a column from MySQL as text. The table has the alias `t`. */
export function readColumn(table: keyof Tables, column: string, kind: ColumnKind): string {
  if (table === 'allocations' && column === 'consumer_id') return text(consumerAsItsRecord);
  const name = `t.${column}`;
  switch (kind) {
    case 'integer':
      return name;
    case 'text':
      return text(name);
    // MySQL prints a FLOAT with six digits. Upstream reads these digits, so they are the value that counts.
    case 'ratio':
      return `concat(${name})`;
    // MySQL may hold dates with day 0 or month 0, which are not valid times.
    case 'time':
      return `case when month(${name}) > 0 and dayofmonth(${name}) > 0 then date_format(${name}, '%Y-%m-%d %H:%i:%s.%f') end`;
  }
}

/** Converts a text to Unicode from any character set. */
const text = (expression: string): string => `convert(${expression} using utf8mb4)`;

/**
 * The consumer UUID in the spelling of the table consumers. MySQL matches UUIDs that differ only in upper and lower
 * case; PostgreSQL does not.
 */
const consumerAsItsRecord = 'coalesce((select c.uuid from consumers c where c.uuid = t.consumer_id), t.consumer_id)';

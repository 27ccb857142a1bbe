import type { ColumnKind } from './copied_tables.ts';

/** The SQL expression that reads a column from MySQL as text. The table has the alias `t`. */
export function readColumn(column: string, kind: ColumnKind): string {
  const name = `t.${column}`;
  switch (kind) {
    case 'integer':
      return name;
    case 'text':
      return text(name);
    // MySQL finds a UUID in any case, PostgreSQL only as it is spelt, and the API writes small letters.
    case 'uuid':
      return `lower(${text(name)})`;
    // MySQL prints a FLOAT with six digits. Upstream reads these digits, so they are the value that counts.
    case 'ratio':
      return `concat(${name})`;
    // MySQL may hold dates with day 0 or month 0, which are not valid times.
    case 'time':
      return `case when month(${name}) > 0 and dayofmonth(${name}) > 0 then date_format(${name}, '%Y-%m-%d %H:%i:%s.%f') end`;
  }
}

/** Converts a text to Unicode from any character set. */
export const text = (expression: string): string => `convert(${expression} using utf8mb4)`;

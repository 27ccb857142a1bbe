import type { Tables } from '../../db/tables.ts';
import type { ColumnKind } from './copied_tables.ts';

/** The expression by which a column is read from MySQL, as text; its table goes by the name `t`. */
export function readColumn(table: keyof Tables, column: string, kind: ColumnKind): string {
  if (table === 'allocations' && column === 'consumer_id') return text(consumerAsItsRecord);
  const name = `t.${column}`;
  switch (kind) {
    case 'integer':
      return name;
    case 'text':
      return text(name);
    // A FLOAT has no more than the six digits that upstream gets to see, and these are what it means.
    case 'ratio':
      return `concat(${name})`;
    // MySQL may hold a day 0 of month 0, which is no time.
    case 'time':
      return `case when month(${name}) > 0 and dayofmonth(${name}) > 0 then date_format(${name}, '%Y-%m-%d %H:%i:%s.%f') end`;
  }
}

/** In Unicode, whatever the character set of the column. */
const text = (expression: string): string => `convert(${expression} using utf8mb4)`;

/** MySQL finds a consumer's allocations also where their spelling of the UUID differs in case; PostgreSQL does not. */
const consumerAsItsRecord = 'coalesce((select c.uuid from consumers c where c.uuid = t.consumer_id), t.consumer_id)';

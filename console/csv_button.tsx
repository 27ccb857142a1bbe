import { csv, type TextTable } from '../src/cli/table.ts';
import { safeCell } from './text.ts';

/** A button that saves rows as a file of comma-separated values, with exact numbers. */
export function CsvButton({ name, table }: { readonly name: string; readonly table: () => TextTable }) {
  const save = () => {
    const { head, rows } = table();
    const text = csv({ head, rows: rows.map((row) => row.map(safeCell)) });
    const url = URL.createObjectURL(new Blob([`${text}\n`], { type: 'text/csv;charset=utf-8' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = `${name}.csv`;
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <button type="button" class="small" onClick={save}>
      Save as CSV
    </button>
  );
}

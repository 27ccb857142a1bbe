/** Is told how an import goes. */
export type ImportReport = {
  /** Something worth a line. */
  note(line: string): void;
  /** So many rows of a table are copied. The last call for a table has `done` equal to `total`. */
  progress(table: string, done: number, total: number): void;
};

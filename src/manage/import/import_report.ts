/** Receives the progress of an import. */
export type ImportReport = {
  /** Reports one line about an event. */
  note(line: string): void;
  /** Reports that `done` rows of a table are copied. The last call for a table has `done` equal to `total`. */
  progress(table: string, done: number, total: number): void;
};

import { readFile } from 'node:fs/promises';
import path from 'node:path';

/** Of each scene the values of each series, one for each scrape; null where the scrape had none. */
export type RecordedScene = Readonly<Record<string, readonly (number | null)[]>>;

/** What real services said while their outages were played. */
export type Recording = {
  /** The day on which it was made. */
  readonly recorded: string;
  readonly intervalSeconds: number;
  readonly scenes: Readonly<Record<string, RecordedScene>>;
};

export const recordingFile = path.join(import.meta.dirname, 'recording.json');

/** record.ts has written it. */
export const readRecording = async (): Promise<Recording> => JSON.parse(await readFile(recordingFile, 'utf8'));

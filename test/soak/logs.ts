/** What the processes of the service printed: searched for secrets as it comes, and not stored. */
export type Logs = {
  /** A function that takes the output of one process, piece by piece. */
  reader(): (piece: string) => void;
  /** Lines with a secret. */
  readonly leaks: readonly string[];
  /** Lines about errors that no part of the service expects. Some of them are answered 503. */
  readonly unexpected: readonly string[];
  /** Lines about requests that were answered with a 5xx other than 503, also if a fault cut the answer. */
  readonly failed: readonly string[];
  /** How many characters came. */
  readonly length: number;
};

/** Forms in which a secret may be printed. */
const formsOf = (secret: string): readonly string[] => [
  secret,
  encodeURIComponent(secret),
  Buffer.from(secret).toString('hex'),
  // The end of the text in base64 depends on what follows.
  Buffer.from(secret).toString('base64').replace(/.?=*$/, ''),
];

/** @param secrets all that the processes know by now */
export function openLogs(secrets: () => Iterable<string>): Logs {
  const leaks: string[] = [];
  const unexpected: string[] = [];
  const failed: string[] = [];
  let length = 0;
  const look = (line: string): void => {
    if (line.includes('Unexpected error')) unexpected.push(line);
    if (/"status":5(?!03)\d\d\b/.test(line)) failed.push(line);
    if ([...secrets()].flatMap(formsOf).some((form) => line.includes(form))) leaks.push(line);
  };
  return {
    leaks,
    unexpected,
    failed,
    get length() {
      return length;
    },
    reader: () => {
      let begun = '';
      return (piece) => {
        length += piece.length;
        const lines = (begun + piece).split('\n');
        begun = lines.pop() ?? '';
        for (const line of lines) look(line);
      };
    },
  };
}

/** Exit codes by which supervisors and scripts distinguish failures; numbers and names are of sysexits.h. */
export const sysexits = { dataError: 65, unavailable: 69, osError: 71, noPermission: 77, config: 78 } as const;

/** A failure with a specific exit code. */
export class ExitError extends Error {
  override readonly name = 'ExitError';
  readonly exitCode: number;

  constructor(message: string, is: keyof typeof sysexits, cause: unknown) {
    super(message, { cause });
    this.exitCode = sysexits[is];
  }
}

/** The message of a value that was thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

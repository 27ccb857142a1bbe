/**
 * Why the database could not be reached, as text. Node joins the errors of several addresses in one that has no
 * message.
 */
export function failureOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map((each: unknown) => failureOf(each)).join(', ');
  }
  return error instanceof Error ? error.message : String(error);
}

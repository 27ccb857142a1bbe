/**
 * Does work round by round: a call while a round is under way asks for one more.
 *
 * @param work.failed called where a round has thrown; then there is no further round until the next call
 */
export function onceMoreIfAsked({
  round,
  failed,
}: {
  readonly round: () => Promise<void>;
  readonly failed: () => void;
}): () => Promise<void> {
  let isUnderWay = false;
  let isAsked = false;
  return async () => {
    isAsked = true;
    if (isUnderWay) return;
    isUnderWay = true;
    try {
      while (isAsked) {
        isAsked = false;
        await round();
      }
    } catch {
      failed();
    } finally {
      isUnderWay = false;
    }
  };
}

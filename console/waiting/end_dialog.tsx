import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, isNotFound } from '../../src/client/errors.ts';
import type { WaitingClaim } from '../../src/client/waiting.ts';
import { messageOf } from '../../src/text/print.ts';
import { consumerText } from '../consumer_link.tsx';
import { Name } from '../name.tsx';
import { placement } from '../session.ts';
import { counted, visible } from '../text.ts';

/** Whether the service has answered that it did nothing. Without such an answer it may have ended the wait. */
const isRefusal = (error: unknown): boolean => error instanceof ApiError && error.status < 500;

/** Ends the wait of a claim after a confirmation. @param props.close called with the result, if there is one */
export function EndDialog({
  claim: { consumers, names, project_id: project, line },
  close,
}: {
  readonly claim: WaitingClaim;
  readonly close: (result?: string) => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const gone = useRef(new AbortController());
  const result = useRef<string | undefined>(undefined);
  const [isSending, setSending] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    dialog.current?.showModal();
    return () => gone.current.abort(new DOMException('The dialog was left.', 'AbortError'));
  }, []);
  const [consumer = '', ...others] = consumers;
  const name = names?.[0] ?? undefined;
  const text = consumerText({ uuid: consumer, name });
  const end = async (event: SubmitEvent) => {
    event.preventDefault();
    if (isSending) return;
    setSending(true);
    setError(undefined);
    try {
      await placement.waiting.remove(consumer, { signal: gone.current.signal });
      result.current = `The wait of ${text} is ended.`;
    } catch (failure) {
      if (gone.current.signal.aborted) return;
      if (!isNotFound(failure)) {
        setError(failure);
        setSending(false);
        return;
      }
      result.current = `The claim of ${text} does not wait any more.`;
    }
    // The dialog restores the focus, and then calls the view by `onClose`.
    dialog.current?.close();
  };
  return (
    <dialog
      ref={dialog}
      aria-labelledby="end-heading"
      onCancel={(event) => {
        // Its request may have ended the wait already.
        if (isSending) event.preventDefault();
      }}
      onClose={() => close(result.current)}
    >
      <form onSubmit={end}>
        <h2 id="end-heading">End this wait?</h2>
        <p>
          {name === undefined ? null : (
            <>
              <Name text={name} />{' '}
            </>
          )}
          <code>{visible(consumer)}</code>
          {others.length === 0 ? '' : ` and ${counted(others.length, 'other consumer')}`} of project{' '}
          <bdi>{visible(project)}</bdi>
          {line === null ? (
            ''
          ) : (
            <>
              , in line <bdi>{visible(line)}</bdi>
            </>
          )}
        </p>
        <p>The waiting client gets the answer that the claim fits nowhere. This cannot be undone.</p>
        {error === undefined ? null : (
          <p class="trouble" role="alert">
            <strong>
              {isRefusal(error) ? 'The wait was not ended.' : 'It is not known whether the wait was ended.'}
            </strong>{' '}
            {visible(error instanceof ApiError ? error.detail : messageOf(error))}
          </p>
        )}
        <div class="buttons">
          <button type="button" disabled={isSending} onClick={() => dialog.current?.close()}>
            Let it wait
          </button>
          <button type="submit" class="primary">
            End the wait
          </button>
        </div>
      </form>
    </dialog>
  );
}

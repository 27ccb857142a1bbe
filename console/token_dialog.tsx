import { useEffect, useRef, useState } from 'preact/hooks';
import { isWithoutKeystone, token } from './session.ts';
import { useStore } from './store.ts';

/** Asks for the token, at the start and after the service has refused it. The view behind the dialog stays. */
export function TokenDialog() {
  const now = useStore(token);
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState(isWithoutKeystone ? 'admin' : '');
  const isOpen = now.state !== 'given';
  useEffect(() => {
    if (isOpen && dialog.current?.open === false) dialog.current.showModal();
    if (!isOpen) dialog.current?.close();
  }, [isOpen]);
  const give = (event: SubmitEvent) => {
    event.preventDefault();
    const value = text.trim();
    if (value === '') return;
    token.set({ state: 'given', value });
    if (!isWithoutKeystone) setText('');
  };
  return (
    <dialog
      ref={dialog}
      aria-labelledby="token-heading"
      onCancel={(event) => event.preventDefault()}
      onClose={() => {
        // The second Escape closes a dialog in spite of `onCancel`.
        if (token.get().state !== 'given') dialog.current?.showModal();
      }}
    >
      <form onSubmit={give}>
        <h2 id="token-heading">{isWithoutKeystone ? 'Which user?' : 'Token'}</h2>
        {now.state === 'refused' ? (
          <p class="trouble" role="alert">
            The service does not accept this token {isWithoutKeystone ? '' : 'any more, or at all'}. Nothing of the page
            is lost: give another one and go on.
          </p>
        ) : null}
        <label>
          <span>{isWithoutKeystone ? 'User, or user:project' : 'Token'}</span>
          <input
            {...(isWithoutKeystone ? { type: 'text' } : { type: 'password' })}
            value={text}
            autoComplete="off"
            spellcheck={false}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <p class="faint">
          {isWithoutKeystone ? (
            'This service checks no identities (noauth2); the user admin may do everything.'
          ) : (
            <>
              What <code>openstack token issue -f value -c id</code> prints.
            </>
          )}{' '}
          It is kept in the memory of this tab only.
        </p>
        <button type="submit" class="primary">
          Go on
        </button>
      </form>
    </dialog>
  );
}

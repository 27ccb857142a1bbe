import { useEffect, useRef, useState } from 'preact/hooks';
import { authStrategy, isWithoutIdentities, token } from './session.ts';
import { useStore } from './store.ts';

/** Requests the token from the user, at the start and after the service has refused it. The view behind the dialog stays. */
export function TokenDialog() {
  const now = useStore(token);
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState(isWithoutIdentities ? 'admin' : '');
  const [isOdd, setOdd] = useState(false);
  const isOpen = now.state !== 'given';
  useEffect(() => {
    if (isOpen && dialog.current?.open === false) dialog.current.showModal();
    if (!isOpen) dialog.current?.close();
  }, [isOpen]);
  const give = (event: SubmitEvent) => {
    event.preventDefault();
    const value = text.trim();
    if (value === '') return;
    // A header of a request cannot have other characters.
    const isPlain = /^[\x20-\x7e]+$/.test(value);
    setOdd(!isPlain);
    if (!isPlain) return;
    token.set({ state: 'given', value });
    if (!isWithoutIdentities) setText('');
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
        <h2 id="token-heading">{isWithoutIdentities ? 'Which user?' : 'Token'}</h2>
        {now.state === 'refused' && !isOdd ? (
          <p class="trouble" role="alert">
            The service does not accept this token any more, or at all. Nothing of the page is lost: give another one
            and go on.
          </p>
        ) : null}
        {isOdd ? (
          <p class="trouble" role="alert">
            Only printable ASCII characters can be sent. This text has others.
          </p>
        ) : null}
        <label>
          <span>{isWithoutIdentities ? 'User, or user:project' : 'Token'}</span>
          <input
            {...(isWithoutIdentities ? { type: 'text' } : { type: 'password' })}
            value={text}
            autoComplete="off"
            spellcheck={false}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <p class="faint">
          {isWithoutIdentities ? (
            'This service checks no identities (noauth2); the user admin may do everything.'
          ) : (
            <TokenSource />
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

/** Which command prints a token of this service. */
const TokenSource = () =>
  authStrategy === 'tokens' ? (
    <>
      What <code>placement-manage token create</code> prints, or a token of an issuer that this service trusts.
    </>
  ) : (
    <>
      What <code>openstack token issue -f value -c id</code> prints.
    </>
  );

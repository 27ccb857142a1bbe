import { useEffect, useRef } from 'preact/hooks';

const keys: readonly (readonly [keys: string, what: string])[] = [
  ['/', 'search names and UUIDs'],
  ['?', 'this page'],
  ['Escape', 'closes a dialog; in the grid nothing is chosen any more'],
  ['Tab', 'goes to the next link, field or button'],
  ['arrow keys', 'in the grid: choose the next provider'],
  ['Enter', 'in the grid: opens the provider, or zooms to the group'],
  ['+  −  0', 'in the grid: zoom in, zoom out, show all'],
  ['Home, End', 'in the grid: the first and the last provider'],
];

const words: readonly (readonly [word: string, meaning: string])[] = [
  ['provider', 'has resources: a host, a part of it such as a NUMA node or a device, or a shared pool'],
  ['tree', 'a provider without a parent, the root, and all below it: mostly a host'],
  ['class', 'a kind of resource that is counted, such as VCPU'],
  ['capacity', '(total − reserved) × ratio: how much can be claimed of a class'],
  ['trait', 'a quality that is not counted, such as HW_CPU_X86_AVX2'],
  ['aggregate', 'a group of providers, such as a rack; a pool shares with the providers of its aggregates'],
  ['consumer', 'holds resources: an instance or a job, of a project and a user'],
  [
    'times',
    `are those of your time zone, ${new Intl.DateTimeFormat().resolvedOptions().timeZone}; months are those of UTC`,
  ],
  ['generation', 'grows with each change; a client that has read an older one cannot overwrite a newer one'],
];

/** The keys of the console, and an explanation of its words. */
export function HelpDialog({ close }: { readonly close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    // Otherwise its only button has the focus, and a low window begins with the end of the text.
    heading.current?.focus();
  }, []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-heading" onClose={close}>
      <h2 id="help-heading" ref={heading} tabIndex={-1}>
        Keys and words
      </h2>
      <dl class="meanings">
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <dl class="meanings">
        {words.map(([word, meaning]) => (
          <div key={word}>
            <dt>{word}</dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <p class="faint">The console only reads, except that it can end the wait of a waiting claim.</p>
      <button type="button" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </dialog>
  );
}

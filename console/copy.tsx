import { useState } from 'preact/hooks';

/** How long the button shows the result, in milliseconds. */
const saidMs = 1_500;

/** A button that copies a text. Without the clipboard of a secure page it copies the selection. */
export function Copy({ text, what }: { readonly text: string; readonly what: string }) {
  const [said, setSaid] = useState('Copy');
  const copy = async () => {
    // Pages of plain HTTP have no clipboard, whatever the types say.
    const clipboard: Clipboard | undefined = navigator.clipboard;
    const isDone =
      (clipboard !== undefined &&
        (await clipboard.writeText(text).then(
          () => true,
          () => false,
        ))) ||
      copySelected(text);
    setSaid(isDone ? 'Copied' : 'Not copied');
    setTimeout(() => setSaid('Copy'), saidMs);
  };
  return (
    <button type="button" class="small copy" aria-label={`${said} ${what}`} onClick={copy}>
      {said}
    </button>
  );
}

/** @returns whether it was copied */
function copySelected(text: string): boolean {
  const focused = document.activeElement;
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'hidden';
  document.body.append(area);
  area.select();
  const isDone = document.execCommand('copy');
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isDone;
}

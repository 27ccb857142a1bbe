import { useState } from 'preact/hooks';

/** How long the button says that it has copied, in milliseconds. */
const saidMs = 1_500;

/** A button that copies a text. Without the clipboard of a secure page it copies what is selected. */
export function Copy({ text, what }: { readonly text: string; readonly what: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    // Pages of plain HTTP have no clipboard, whatever the types say.
    const clipboard: Clipboard | undefined = navigator.clipboard;
    if (
      clipboard === undefined ||
      !(await clipboard.writeText(text).then(
        () => true,
        () => false,
      ))
    )
      copySelected(text);
    setDone(true);
    setTimeout(() => setDone(false), saidMs);
  };
  return (
    <button type="button" class="small copy" aria-label={`${isDone ? 'Copied' : 'Copy'} ${what}`} onClick={copy}>
      {isDone ? 'Copied' : 'Copy'}
    </button>
  );
}

function copySelected(text: string): void {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'hidden';
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

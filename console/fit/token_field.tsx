import { useId, useRef, useState } from 'preact/hooks';
import { visible } from '../text.ts';
import { withWord } from './query_fields.ts';

/**
 * A field for several words, such as traits: each is added by Enter, and removed by its button. The form finds a word
 * that is not added yet under the name of the field. It is not added when the field is left: the form would grow, and
 * a click would miss its button.
 */
export function TokenField({
  label,
  name,
  values,
  options,
  placeholder,
  meaning = (word) => word,
  shown = (value) => value,
  onChange,
}: {
  readonly label: string;
  readonly name: string;
  readonly values: readonly string[];
  readonly options: readonly string[];
  readonly placeholder: string;
  /** Conversions between words and values: for things that have a name and a UUID. */
  readonly meaning?: (word: string) => string;
  readonly shown?: (value: string) => string;
  readonly onChange: (values: readonly string[]) => void;
}) {
  const [text, setText] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const list = useId();
  const input = useId();
  const add = (value: string) => {
    setText('');
    const next = withWord(values, meaning(value.trim()));
    if (next !== values) onChange(next);
  };
  const start = /^(!|in:(?:.*,)?)/.exec(text)?.[0] ?? '';
  return (
    <div class="tokens">
      <label for={input}>{label}</label>
      <div>
        {values.map((value) => (
          <span key={value} class="token">
            {visible(shown(value))}
            <button
              type="button"
              aria-label={`Remove ${visible(shown(value))}`}
              onClick={() => {
                onChange(values.filter((each) => each !== value));
                field.current?.focus(); // the button is removed
              }}
            >
              ×
            </button>
          </span>
        ))}
        <input
          ref={field}
          id={input}
          name={name}
          type="text"
          list={list}
          value={text}
          placeholder={placeholder}
          autoComplete="off"
          onInput={(event) => {
            const { value } = event.currentTarget;
            // An item of the list is a whole name and is added at once. Typed text may be the beginning of a longer name.
            const isTyped = 'inputType' in event && event.inputType !== 'insertReplacementText';
            if (!isTyped && value !== '') add(value);
            else setText(value);
          }}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return;
            event.preventDefault(); // it adds the word, and does not send the form
            add(text);
          }}
        />
        <datalist id={list}>
          {options.map((name) => (
            <option key={name} value={start + name} />
          ))}
        </datalist>
      </div>
    </div>
  );
}

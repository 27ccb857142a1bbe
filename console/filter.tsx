import { navigate } from './route.tsx';

/** Opens a view with a filter, or loads it again where it is open. */
export function find(url: string, again: () => void): void {
  if (url === location.pathname + location.search) again();
  else navigate(url);
}

/** The values of fields without the blanks around them, as they come with a copied text. */
export const trimmed = <Name extends string>(fields: Readonly<Record<Name, string>>): Record<Name, string> =>
  // The names stay as they are.
  Object.fromEntries(Object.entries<string>(fields).map(([name, value]) => [name, value.trim()])) as Record<
    Name,
    string
  >;

/** Makes the text fields of a filter, each of which changes one of its values. */
export const fieldsOf =
  <Fields extends Readonly<Record<string, string>>>(fields: Fields, setFields: (fields: Fields) => void) =>
  (name: keyof Fields & string, label: string) => (
    <label>
      <span>{label}</span>
      <input
        type="text"
        value={fields[name]}
        onInput={(event) => setFields({ ...fields, [name]: event.currentTarget.value })}
      />
    </label>
  );

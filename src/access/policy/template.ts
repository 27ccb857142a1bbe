/** The values of credentials and targets: JSON. */
export type Value = string | number | boolean | null | readonly Value[] | { readonly [key: string]: Value };
/** The values by name. */
export type Values = { readonly [key: string]: Value };

/** Python's `%` formatting by names, as far as rules use it. */
const reference = /%(?:(%)|\(([^()]*)\)s)/g;

/** Whether every percent sign belongs to a `%(name)s` or `%%`. */
export const isTemplate = (text: string): boolean => !text.replaceAll(reference, '').includes('%');

/**
 * Fills in a template such as `%(project_id)s`; undefined where the values lack a name of the template.
 *
 * @param nullIsMissing whether null is no value; else it is `None`.
 */
export function fillTemplate(template: string, values: Values, nullIsMissing = false): string | undefined {
  if (!template.includes('%')) return template;
  let complete = true;
  const filled = template.replaceAll(reference, (_match, percent: string | undefined, name: string) => {
    if (percent !== undefined) return '%';
    const value = Object.hasOwn(values, name) ? (values[name] ?? null) : undefined;
    if (value !== undefined && !(nullIsMissing && value === null)) return pythonText(value);
    complete = false;
    return '';
  });
  return complete ? filled : undefined;
}

/** What `str` makes of a value in Python: rules compare texts, `is_admin_project:True` for example. */
export function pythonText(value: Value): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/**
 * The text of a Python literal: `True`, `None`, `'Member'`, `-1`; undefined where it is no literal. The kind of a check
 * may be a literal: `'Member':%(role)s`.
 */
export function literalText(text: string): string | undefined {
  if (text === 'True' || text === 'False' || text === 'None') return text;
  const quoted = /^(?:'([^'\\]*)'|"([^"\\]*)")$/.exec(text);
  if (quoted !== null) return quoted[1] ?? quoted[2];
  if (/^[-+]?(?:0|[1-9]\d{0,14})$/.test(text)) return String(Number(text) + 0);
  const decimal = /^[-+]?\d{1,8}\.\d{1,6}$/.test(text) ? Number(text) : undefined;
  if (decimal === undefined) return undefined;
  return Number.isInteger(decimal) ? decimal.toFixed(1) : String(decimal);
}

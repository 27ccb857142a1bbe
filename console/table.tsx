import type { ComponentChildren } from 'preact';

/** The heading of a column: its text, or more about it. */
export type Heading =
  | string
  | {
      readonly text: ComponentChildren;
      /** Numbers are aligned to the right; a bar needs room. */
      readonly kind?: 'number' | 'bar-column' | undefined;
      /** What the numbers are, for readers who point at it. */
      readonly title?: string;
      readonly sort?: 'ascending' | 'descending' | undefined;
    };

/**
 * A table that scrolls by itself where it is wider than the page.
 *
 * @param props.name what the table shows, for screen readers
 * @param props.headings of its columns; undefined for a column that is not shown
 * @param props.children its rows
 */
export function Table({
  name,
  headings,
  kind,
  caption,
  children,
}: {
  readonly name: string;
  readonly headings: readonly (Heading | undefined)[];
  readonly kind?: string;
  readonly caption?: string;
  readonly children: ComponentChildren;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keys
    <section class="scroll" tabIndex={0} aria-label={name}>
      <table class={kind === undefined ? 'rows' : `rows ${kind}`}>
        {caption === undefined ? null : <caption class="hidden">{caption}</caption>}
        <thead>
          <tr>
            {headings.map((heading, index) => {
              if (heading === undefined) return null;
              const { text, kind, title, sort } = typeof heading === 'string' ? { text: heading } : heading;
              return (
                <th key={index} scope="col" class={kind} title={title} aria-sort={sort}>
                  {text}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

import { visible } from './text.ts';

/** A name of the service. It does not change the direction of the text around it. */
export const Name = ({ text }: { readonly text: string }) => (
  <bdi class="name">{text === '' ? '(no name)' : visible(text)}</bdi>
);

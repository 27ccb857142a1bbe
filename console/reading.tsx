/** Instead of a value that is not there yet: that it is being read. Nothing where the attempt failed: the view shows the error. */
export const Reading = ({ isLoading, text = 'Reading…' }: { readonly isLoading: boolean; readonly text?: string }) =>
  isLoading ? <p class="faint">{text}</p> : null;

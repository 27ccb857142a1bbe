const pattern = /^([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})$/i;

/** The UUID that a text of a URL or an input field is, as the service writes it: in lower case with hyphens. Undefined for another text. */
export const uuidOf = (text: string): string | undefined => pattern.exec(text)?.slice(1).join('-').toLowerCase();

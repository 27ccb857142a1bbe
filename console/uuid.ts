const pattern = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

/** Whether a text of an input field is a UUID, with hyphens or without. */
export const isUuid = (text: string): boolean => pattern.test(text);

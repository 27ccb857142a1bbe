const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The text of bytes in UTF-8. A byte order mark stays in it: JSON may not begin with one (RFC 8259, 8.1).
 *
 * @throws TypeError for other bytes
 */
export const decodeUtf8 = (bytes: Uint8Array): string => decoder.decode(bytes);

/** A UUID with a number in it. @param kind the character of its first part, by which the UUIDs of several kinds differ */
export const numberedUuid = (number: number, kind = '0'): string =>
  `${kind.repeat(8)}-0000-4000-8000-${String(number).padStart(12, '0')}`;

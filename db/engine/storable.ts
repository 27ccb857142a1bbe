/**
 * Whether the database can store a text: PostgreSQL allows no NUL, and UTF-8 no lone surrogate. Any other text cannot
 * be in the database, so a search for it finds nothing.
 */
export const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0');

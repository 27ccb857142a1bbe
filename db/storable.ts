/** Whether a text can be stored at all: PostgreSQL knows no NUL, and UTF-8 no lone surrogate. What cannot is nowhere. */
export const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0');

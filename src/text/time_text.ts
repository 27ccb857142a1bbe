/** A time of the database as answers and the log show it; null where there is none, or where it is infinite, which PostgreSQL has as well. */
export const timeText = (time: Date | null): string | null =>
  time === null || Number.isNaN(time.getTime()) ? null : time.toISOString();

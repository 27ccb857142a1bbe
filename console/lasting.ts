import { ApiError, VersionError } from '../src/client/errors.ts';

/** Whether the same request would be refused again. */
export const isLasting = (error: unknown): boolean =>
  error instanceof VersionError || (error instanceof ApiError && [400, 403].includes(error.status));

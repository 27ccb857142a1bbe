import { randomUUID } from 'node:crypto';

/**
 * Every answer carries a fresh id in this header. A request may bring the id of the operation that it is part of, in the same
 * header, for the logs.
 */
export const requestIdHeader = 'x-openstack-request-id';

export const newRequestId = (): string => `req-${randomUUID()}`;

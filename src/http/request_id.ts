import { randomUUID } from 'node:crypto';

/**
 * Every answer carries a fresh id in this header. A request may bring the id of the operation that it is part of, in the same
 * header, for the logs.
 */
export const requestIdHeader = 'x-openstack-request-id';

/** A fresh one. */
export const newRequestId = (): string => `req-${randomUUID()}`;

/** Whether a client's text has the form of one: anything else is not logged as such. */
export const isRequestId = (text: string): boolean => /^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);

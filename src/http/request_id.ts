import { randomUUID } from 'node:crypto';

/**
 * Every answer has a new id in this header. A request may have the id of a whole operation in the same header, which
 * the log shows.
 */
export const requestIdHeader = 'x-openstack-request-id';

/** A new request id. */
export const newRequestId = (): string => `req-${randomUUID()}`;

/** Whether a text of a client has the form of a request id: other texts are not logged as one. */
export const isRequestId = (text: string): boolean => /^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);

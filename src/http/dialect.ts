import { type Service, versionText } from '../api/microversions.ts';
import { ApiError } from '../errors.ts';
import { olderVersionHeader, requestedMinor, versionHeader } from './microversion.ts';
import { type ErrorContext, renderError } from './render_error.ts';

/** What services of the family say each in its own way, since each has its own framework upstream. */
export type Dialect = {
  /** The minor version that a request asks for. @throws ApiError 400 or 406. */
  readonly requestedMinor: (service: Service, headers: Headers) => number;
  /** Says in an answer at which version it was made, and that the answer varies by that, unless `vary` is false. */
  readonly setVersion: (response: Response, service: Service, minor: number, vary: boolean) => void;
  /** @throws ApiError where a request's body cannot be taken for what its Content-Type (empty where there is none) says. */
  readonly checkContentType: (contentType: string, contentLength: number) => void;
  /** What is said where the policy does not let a request through. */
  readonly forbidden: (rule: string) => string;
  readonly renderError: (error: ApiError, context: ErrorContext) => Response;
};

/** How upstream's Placement speaks. */
export const placementDialect: Dialect = {
  requestedMinor: (service, headers) =>
    requestedMinor(service, headers.get(versionHeader), headers.get(olderVersionHeader(service))),
  setVersion: (response, service, minor, vary) => {
    response.headers.set(versionHeader, `${service.type} ${versionText(service, minor)}`);
    if (vary) response.headers.append('vary', versionHeader);
  },
  checkContentType: (contentType, contentLength) => {
    if (contentLength === 0 || contentType !== '') return;
    throw new ApiError(400, 'content-type header required when content-length > 0', { vary: false });
  },
  forbidden: (rule) => `Policy does not allow ${rule} to be performed.`,
  renderError,
};

import { ApiError } from '../request/errors.ts';
import { since } from '../rest/microversions.ts';
import { invalidValue } from '../rest/schema_check.ts';
import { versionText } from '../rest/versions.ts';
import type { Dialect } from './dialect.ts';
import { olderVersionHeader, requestedMinor, versionHeader } from './microversion.ts';
import { renderError } from './render_error.ts';

/** The dialect of upstream's Placement. */
export const placementDialect: Dialect = {
  requestedMinor: (service, headers) =>
    requestedMinor(service, headers.get(versionHeader), headers.get(olderVersionHeader(service))),
  versionHeaders: (service, minor, vary) => ({
    [versionHeader]: `${service.type} ${versionText(service, minor)}`,
    ...(vary ? { vary: versionHeader } : {}),
  }),
  checkContentType: (contentType, contentLength) => {
    if (contentLength === 0 || contentType !== '') return;
    throw new ApiError(400, 'content-type header required when content-length > 0', { vary: false });
  },
  // Upstream's text is empty, and its versions keep it.
  tooEarly: ({ method, path, since: first }, service, minor) =>
    minor < since.entityTags
      ? ''
      : `${method} ${path.replace(/:([a-z_]+)/g, '{$1}')} needs microversion ${versionText(service, first)}; this request is for ` +
        `${versionText(service, minor)}.`,
  malformedBody: (why) => `Malformed JSON: ${why}`,
  invalidBody: (issues, schema) => invalidValue(issues, schema),
  forbidden: (rule) => `Policy does not allow ${rule} to be performed.`,
  renderError,
};

import { since } from '../placement/microversions.ts';
import { isOwn, majorOf, openstackRange, rangeOf, type Version } from '../placement/versions.ts';
import type { Exchange } from './exchange.ts';

/** Whether the errors of a request have the form that all errors have from 2.7 on. */
export const hasCommonForm = ({ api, version }: Pick<Exchange, 'api' | 'version'>): boolean =>
  isOwn(api.service, version) && version >= since.teams;

/**
 * Gives a request that is refused before its version is negotiated its version, if all errors of this version have one form. At other
 * versions such a refusal has the form in which upstream's middleware writes it, without a version.
 *
 * @returns whether the request has such a version
 */
export function takeCommonForm(exchange: Exchange, requestHeaders: Headers): boolean {
  const { dialect, service } = exchange.api;
  let version: Version;
  try {
    version = dialect.requestedVersion(service, requestHeaders) ?? service.defaultVersion;
  } catch {
    return false; // a client that is refused does not learn that the version is not served
  }
  if (!hasCommonForm({ api: exchange.api, version })) return false;
  exchange.version = version;
  exchange.versions = rangeOf(service, majorOf(version)) ?? openstackRange(service);
  return true;
}

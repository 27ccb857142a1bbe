import * as v from 'valibot';
import { since } from '../../placement/microversions.ts';
import { type Version, versionText } from '../../placement/versions.ts';
import { ApiError } from '../../request/errors.ts';
import type { ApiRequest } from '../../rest/endpoint.ts';

/** The fields of claims that OpenStack does not know, with the versions that brought them, the newest first. */
const newerFields: readonly (readonly [name: string, since: Version])[] = [
  ['name', since.names],
  ['line', since.waiting],
  ['expires_in', since.terms],
  ['candidates', since.placing],
  ['dry_run', since.placing],
];

/**
 * Adds to a refusal by the policy that the body has a field of a newer version than the request: with it another rule might decide. A body
 * that the version knows gets the refusal as it is.
 *
 * @returns the error to throw
 */
export async function namingNewerFields(
  request: Pick<ApiRequest, 'version' | 'json'>,
  refusal: unknown,
): Promise<unknown> {
  if (!(refusal instanceof ApiError) || request.version >= since.placing) return refusal;
  const body = await request.json(v.record(v.string(), v.unknown())).catch(() => undefined);
  if (body === undefined) return refusal;
  const parts = [body, ...Object.values(body)].filter((part) => typeof part === 'object' && part !== null);
  const found = newerFields.find(([name]) => parts.some((part) => Object.hasOwn(part, name)));
  if (found === undefined) return refusal;
  const [name, first] = found;
  const { status, code, vary } = refusal;
  return new ApiError(
    status,
    `${refusal.message} '${name}' needs microversion ${versionText(first)}; this request is for ${versionText(request.version)}.`,
    { code, vary },
  );
}

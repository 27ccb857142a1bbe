import type { ConsumerClaim } from '../../claims/claim.ts';
import type { Wait } from '../../claims/waiter.ts';
import type { Config } from '../../config/config.ts';
import { since } from '../../placement/microversions.ts';
import { badRequest } from '../../request/errors.ts';
import type { ApiRequest } from '../../rest/endpoint.ts';
import { preferredWait } from '../../rest/preferred_wait.ts';
import { clientOf } from '../answers.ts';
import type { Dependencies } from '../dependencies.ts';
import { claimOf, claimRules } from './claim_rights.ts';

/** How long the claim of a request may wait, in seconds (from 2.8); undefined without the preference. @throws ApiError 400 */
export const requestedWait = (request: ApiRequest, { placement }: Config): number | undefined =>
  request.version < since.waiting ? undefined : preferredWait(request, { least: 1, most: placement.maxWait });

/**
 * How the claim of a request waits where it cannot be written at once (from 2.8); undefined if it does not wait: without the preference, in
 * a dry run, with If-Match, and without a consumer by query.
 *
 * @param asked.seconds as `requestedWait` gives them
 * @throws ApiError 400 for a line without a wait or of several projects
 */
export function waitFor(
  request: ApiRequest,
  consumers: readonly ConsumerClaim[],
  asked: {
    readonly seconds: number | undefined;
    readonly rule: string;
    readonly line: string | undefined;
    readonly isDryRun: boolean;
  },
  { config }: Pick<Dependencies, 'config'>,
): Wait | undefined {
  const { seconds, line, isDryRun } = asked;
  const [first] = consumers;
  const mayWait = !isDryRun && request.ifMatch === undefined && consumers.some(({ queries }) => queries !== undefined);
  if (seconds === undefined || !mayWait || first === undefined) {
    if (line === undefined) return undefined;
    const why =
      seconds === undefined
        ? 'the request has no header Prefer: wait'
        : isDryRun
          ? 'a dry run does not wait'
          : request.ifMatch === undefined
            ? "no consumer has 'candidates'"
            : 'a request with If-Match does not wait';
    throw badRequest(`'line' is for a claim that waits, and ${why}. Got: ${JSON.stringify(line)}`);
  }
  const { projectId, userId } = first;
  const other = consumers.find((consumer) => consumer.projectId !== projectId);
  if (line !== undefined && other !== undefined) {
    throw badRequest(
      `'line' is of one project, and the request has consumers of projects ${projectId} and ${other.projectId}. Got: ${JSON.stringify(line)}`,
    );
  }
  return {
    waitMs: seconds * 1000,
    line,
    owner: { projectId, userId },
    client: clientOf(request, config),
    gone: request.gone(),
    askAgain: async () => {
      await request.requireToken();
      return claimOf(consumers, request, claimRules(request, asked.rule, config));
    },
  };
}

import { ApiError, VersionError } from '../src/client/errors.ts';
import { messageOf } from '../src/text/print.ts';
import { Link, urlOf } from './route.tsx';
import { serverVersion } from './session.ts';
import { useStore } from './store.ts';
import { visible } from './text.ts';

/**
 * Says why a part of a view has no data. `what` begins the sentence, such as "The explanation".
 *
 * @param props.mayAskByProject whether the view can show what one project has, which more users may see; `elsewhere`: other views can
 */
export function Trouble({
  error,
  what,
  mayAskByProject = false,
}: {
  readonly error: unknown;
  readonly what: string;
  readonly mayAskByProject?: boolean | 'elsewhere';
}) {
  const max = useStore(serverVersion);
  if (error instanceof VersionError) {
    return (
      <div class="trouble version" role="note">
        <strong>{what} is not offered by this service.</strong> {neededVersion(error)}{' '}
        {max === undefined ? null : `The service offers versions up to ${max} ([api] max_microversion).`}
      </div>
    );
  }
  if (error instanceof ApiError && error.status === 403) {
    return (
      <div class="trouble forbidden" role="note">
        <strong>{what} is not for this user.</strong> {forbiddenText(error.detail)}{' '}
        {mayAskByProject === true
          ? 'For one project it may be allowed: enter your project in the field “Project”.'
          : ''}
        {mayAskByProject === 'elsewhere' ? <ByProject /> : null}
      </div>
    );
  }
  const status = error instanceof ApiError ? error.status : undefined;
  const title =
    status === 404 ? 'It does not exist.' : status === 400 ? 'The request was refused.' : `${what} could not be read.`;
  return (
    <div class="trouble" role="alert">
      <strong>{title}</strong> {visible(error instanceof ApiError ? error.detail : messageOf(error))}
    </div>
  );
}

const ByProject = () => (
  <>
    For one project it may be allowed: enter your project among the <Link to={urlOf('holdings')}>holders</Link>, the{' '}
    <Link to={urlOf('limits')}>limits</Link> or the <Link to={urlOf('waiting')}>waiting claims</Link>.
  </>
);

/** Says which conditions of the URL are not asked, so that no one takes the answer for one to the whole query of the URL. */
export const LeftOut = ({ names }: { readonly names: readonly string[] }) =>
  names.length === 0 ? null : (
    <div class="trouble" role="alert">
      <strong>This is not the whole query of the address.</strong> The form of this console has no{' '}
      {names.map(visible).join(', no ')}, of which the answer takes no account.
    </div>
  );

/** The message that a text of the URL is no UUID. */
export const NoUuid = ({ title, text }: { readonly title: string; readonly text: string }) => (
  <>
    <h1>{title}</h1>
    <div class="trouble" role="alert">
      <strong>“{visible(text)}” is not a UUID.</strong> A UUID is 32 hexadecimal digits, such as
      f81d4fae-7dec-11d0-a765-00a0c91e6bf6.
    </div>
  </>
);

/** The rule of the policy that forbids it, in a sentence for people. */
const forbiddenText = (detail: string): string => {
  const [, rule, caller = ''] = /Policy does not allow (\S+) to be performed\.?(.*)/s.exec(detail) ?? [];
  return rule === undefined
    ? visible(detail)
    : `Its roles are not enough: the rule ${visible(rule)} of the policy forbids it.${visible(caller)}`;
};

/** The version that the client requires, from its error. */
const neededVersion = (error: VersionError): string => {
  const [, since] = /needs microversion (\d+\.\d+)/.exec(error.message) ?? [];
  return since === undefined ? visible(error.message) : `It needs microversion ${since}.`;
};

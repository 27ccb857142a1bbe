import { allOptional } from './filters.ts';
import { versionNumber } from './microversions.ts';
import { type Ask, type CallOptions, listed, pathOf } from './operation.ts';
import { allPages, type Page } from './pages.ts';

/** A token of the service, without the token itself. */
export type ServiceToken = {
  readonly id: string;
  /** How the token begins. */
  readonly prefix: string;
  readonly user_id: string;
  readonly project_id: string;
  readonly roles: readonly string[];
  readonly created_at: string;
  /** Null for one that is valid until it is deleted. */
  readonly expires_at: string | null;
  /** The hour in which it was used last; null if it never was. */
  readonly used_at: string | null;
};

/** A token that was just created: its text is shown only now. */
export type NewServiceToken = ServiceToken & { readonly token: string };

/** The user, the project and the roles of a token, and how long it is valid. */
export type TokenRequest = {
  readonly user_id: string;
  readonly project_id: string;
  readonly roles: readonly string[];
  /** In seconds; without it, until it is deleted. */
  readonly expires_in?: number | undefined;
};

/** Which tokens are listed. */
export type TokenFilter = { readonly project_id?: string | undefined; readonly user_id?: string | undefined };

/** Tokens of the service, for `[api] auth_strategy = tokens`; from 2.7. */
export type TokenCalls = {
  /** All tokens in the order of their ids, page by page. */
  list(query?: TokenFilter, options?: CallOptions): AsyncGenerator<ServiceToken, void>;
  /** One page: at most `limit` tokens (default 1000), after the id `marker`. */
  page(query?: TokenFilter & Page, options?: CallOptions): Promise<readonly ServiceToken[]>;
  /** Makes a token. The request is never sent again: if its answer is lost, a token exists that no client has. `list` shows it. */
  create(request: TokenRequest, options?: CallOptions): Promise<NewServiceToken>;
  /** Revokes a token. @throws ApiError 404 if there is none with this id */
  delete(id: string, options?: CallOptions): Promise<void>;
};

const tokensSince = versionNumber('2.7');
const root = pathOf('tokens');

/** Makes the calls about tokens. */
export function tokenCalls(ask: Ask): TokenCalls {
  const page: TokenCalls['page'] = async ({ project_id, user_id, limit, marker } = {}, options) => {
    const query = allOptional({ project_id, user_id, limit, marker });
    return listed(ask, 'tokens', { since: tokensSince, query }, options);
  };
  return {
    page,
    list: (query = {}, options) => allPages((more) => page({ ...query, ...more }, options)),
    create: ({ user_id, project_id, roles, expires_in }, options) =>
      ask(
        {
          method: 'POST',
          path: root,
          since: tokensSince,
          body: () => ({ user_id, project_id, roles, ...(expires_in === undefined ? {} : { expires_in }) }),
        },
        options,
      ),
    delete: (id, options) => ask({ method: 'DELETE', path: root + pathOf(id), since: tokensSince }, options),
  };
}

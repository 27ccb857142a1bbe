import type { JwtConfig } from '../../config/config.ts';
import { maskUrls } from '../../config/database_url.ts';

/** Issuers that sign tokens for the projects of any user. */
const publicIssuers = ['token.actions.githubusercontent.com', 'gitlab.com', 'accounts.google.com'];

/** Mistakes in the sections `[jwt:NAME]`, one sentence for each. */
export function jwtProblems(sections: Readonly<Record<string, JwtConfig>>): readonly string[] {
  const issuers = Object.values(sections).map(({ issuer }) => issuer);
  return Object.entries(sections).flatMap(([name, settings]) => {
    const { issuer, audience, require, projectClaim, roles, rolesClaim, acceptRoles, jwksUri, jwksFile } = settings;
    const host = issuer === undefined ? undefined : hostOf(issuer);
    const problems = [
      issuer === undefined && 'issuer is missing.',
      issuer !== undefined &&
        host === undefined &&
        jwksUri === undefined &&
        jwksFile === undefined &&
        `issuer = ${JSON.stringify(issuer)} is no URL, so jwks_uri or jwks_file must be set.`,
      issuer !== undefined &&
        issuers.filter((other) => other === issuer).length > 1 &&
        `issuer = ${JSON.stringify(issuer)} is that of another section, too.`,
      jwksUri !== undefined &&
        hostOf(jwksUri) === undefined &&
        `jwks_uri = ${JSON.stringify(maskUrls(jwksUri))} is no URL.`,
      audience.length === 0 && 'audience is missing.',
      projectClaim === undefined && 'project_claim is missing.',
      roles.length === 0 && rolesClaim === undefined && 'roles or roles_claim is missing: tokens would have no role.',
      rolesClaim !== undefined &&
        acceptRoles.length === 0 &&
        'roles_claim needs accept_roles: otherwise an administrator of the issuer would be one here.',
      require.length === 0 &&
        host !== undefined &&
        publicIssuers.includes(host) &&
        `${host} signs tokens for any user, so require must name the claims of the tokens to accept.`,
      ...require.map(
        (item) =>
          !/^\/[^=]*=/.test(item) &&
          `require = ${JSON.stringify(item)} must be a JSON pointer and a value, /claim=value.`,
      ),
    ];
    return problems.filter((problem) => problem !== false).map((problem) => `[jwt:${name}]: ${problem}`);
  });
}

function hostOf(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || protocol === 'http:' ? hostname : undefined;
}

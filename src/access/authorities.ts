import tls from 'node:tls';

/** The system's certificate authorities beside those of Node.js, where this Node.js can list them. */
export const trustedAuthorities = (): string[] | undefined =>
  tls.getCACertificates === undefined
    ? undefined
    : [...new Set([...tls.getCACertificates('default'), ...tls.getCACertificates('system')])];

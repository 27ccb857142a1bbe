/** Why requests and connections are refused before the app gets them. Metrics have a series for each. */
export const refusalReasons = [
  'malformed',
  'head too long',
  'late',
  'host missing',
  'several hosts',
  'host or target invalid',
  'tunnel',
  'unknown expectation',
  'plain HTTP',
  'TLS on plain HTTP',
  'TLS handshake',
  'other host',
] as const;
export type RefusalReason = (typeof refusalReasons)[number];

import { type Identity, noIdentity } from '../../src/rest/identity.ts';

/** An identity with a token for the project p1, except for these fields. */
export const identity = (more: Partial<Identity> = {}): Identity => ({
  ...noIdentity,
  userId: 'u1',
  projectId: 'p1',
  ...more,
});

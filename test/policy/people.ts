import { type Identity, nobody } from '../../src/api/identity.ts';

/** Somebody with a token for the project p1, unless said otherwise. */
export const identity = (more: Partial<Identity> = {}): Identity => ({
  ...nobody,
  userId: 'u1',
  projectId: 'p1',
  ...more,
});

import { answered, type Call, type CallOptions } from './operation.ts';

/** The versions that a server speaks, and the version that this client uses with it. */
export type ServerVersion = {
  /** The microversion in use with the server. It can be newer than this client only if `latest` was asked for. */
  readonly version: string;
  /** The range that the server speaks; absent if it knows no microversions. */
  readonly min?: string;
  readonly max?: string;
};

type VersionDocument = {
  readonly versions?: readonly { readonly min_version?: string; readonly max_version?: string }[];
};

/** Makes the call that asks a server for its versions. */
export const serverVersionCall =
  (call: Call) =>
  async (options?: CallOptions): Promise<ServerVersion> => {
    const reply = call({ method: 'GET', path: '/' }, options);
    const { versions: [first] = [] } = (await answered<VersionDocument | undefined>(reply)) ?? {};
    return {
      version: `1.${(await reply).minor}`,
      ...(first?.min_version === undefined ? {} : { min: first.min_version }),
      ...(first?.max_version === undefined ? {} : { max: first.max_version }),
    };
  };

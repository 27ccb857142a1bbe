import { type Config, defaultConfig } from '../../src/config/config.ts';
import { openService, type PlacementService } from '../../src/start/service.ts';
import { type Engine, freshDatabase, type TestDatabase } from './engines.ts';

/** Some options of some groups. The others keep their defaults. */
export type ConfigOverrides = { readonly [Group in keyof Config]?: Partial<Config[Group]> };

/** `defaultConfig` with the overrides, group by group, and without authentication by Keystone. */
export function testConfig(overrides: ConfigOverrides = {}): Config {
  const groups = Object.entries({ ...defaultConfig, api: { ...defaultConfig.api, authStrategy: 'noauth2' } });
  // The keys are those of Config, and ConfigOverrides gives each group options of its own only.
  return Object.fromEntries(
    groups.map(([name, options]) => [name, { ...options, ...overrides[name as keyof Config] }]),
  ) as unknown as Config;
}

/** Opens the service on a database of the test. @param log where it logs to, and what is known of that */
export function openServiceOn(
  database: TestDatabase,
  overrides: ConfigOverrides = {},
  log: Pick<NonNullable<Parameters<typeof openService>[1]>, 'logger' | 'logHealth' | 'tlsEndsMs'> = {},
): Promise<PlacementService> {
  const config = testConfig({
    ...overrides,
    placementDatabase: { ...database.config, ...overrides.placementDatabase },
  });
  const { embedded } = database;
  return openService(config, { ...log, ...(embedded && { embedded }) });
}

/**
 * Opens the service on a fresh database. `close` drops the database. `service.app.request(...)` works without a socket.
 */
export async function openTestService(engine: Engine, overrides: ConfigOverrides = {}): Promise<PlacementService> {
  const database = await freshDatabase(engine);
  try {
    const service = await openServiceOn(database, overrides);
    return {
      ...service,
      close: async () => {
        await service.close();
        await database.drop();
      },
    };
  } catch (error) {
    await database.drop();
    throw error;
  }
}

/** Calls back with the service on a fresh database, and closes it at the end. */
export async function withTestService<T>(
  engine: Engine,
  overrides: ConfigOverrides,
  use: (service: PlacementService) => Promise<T>,
): Promise<T> {
  const service = await openTestService(engine, overrides);
  try {
    return await use(service);
  } finally {
    await service.close();
  }
}

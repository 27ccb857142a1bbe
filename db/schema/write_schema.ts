import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { openDatabase } from '../engine/connect.ts';
import { migrateToLatest } from './migrate.ts';
import { dumpSchema } from './schema_dump.ts';

/* `npm run schema`: writes db/schema/schema.sql after a migration was added. */

const database = await openDatabase({ embeddedPath: 'memory://' });
await migrateToLatest(database);
await writeFile(path.join(import.meta.dirname, 'schema.sql'), await dumpSchema(database));
await database.close();

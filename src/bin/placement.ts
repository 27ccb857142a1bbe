#!/usr/bin/env node
import '../start/node_version.ts';
import '../start/compile_cache.ts';

// Imported only here: a static import would be compiled before the cache is in use.
const { runPlacement } = await import('./run_placement.ts');
await runPlacement();

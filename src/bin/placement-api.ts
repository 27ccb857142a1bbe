#!/usr/bin/env -S node --max-semi-space-size=16
import '../start/node_version.ts';
import '../start/compile_cache.ts';

// Imported only here: a static import would be compiled before the cache is in use.
const { placementApi } = await import('./run_placement_api.ts');
await placementApi();

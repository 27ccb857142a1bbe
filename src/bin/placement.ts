#!/usr/bin/env node
import '../start/node_version.ts';
import { versionAsOption } from '../cli/connection.ts';
import { placementCommand } from '../cli/program.ts';
import { withRemedy } from '../cli/remedies.ts';
import { runCommand } from '../start/command_line.ts';

await runCommand(placementCommand(), { failed: () => 1, noCommand: 2 }, withRemedy, versionAsOption(process.argv));

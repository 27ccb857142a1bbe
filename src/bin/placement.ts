#!/usr/bin/env node
import '../start/node_version.ts';
import { versionAsOption } from '../cli/connection.ts';
import { exitCodeOf } from '../cli/exit_codes.ts';
import { placementCommand } from '../cli/program.ts';
import { withRemedy } from '../cli/remedies.ts';
import { runCommand } from '../start/run_command.ts';

await runCommand(placementCommand(), { failed: exitCodeOf, noCommand: 2 }, withRemedy, versionAsOption(process.argv));

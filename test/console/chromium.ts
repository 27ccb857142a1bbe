import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import { messageOf } from '../../src/text/print.ts';
import { install } from '../support/debian_packages.ts';

/** The names or paths of Chromium in the usual systems. */
const programs = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];
const debianPackage = 'chromium-headless-shell';

/**
 * A headless Chromium, or the reason why there is none. It is the Chromium of the system; on Debian, as root, a missing
 * one is installed.
 */
export async function launchChromium(): Promise<Browser | string> {
  const found = findProgram();
  if (found !== undefined) return launch(found);
  if (process.getuid?.() !== 0) return `there is no Chromium; install ${debianPackage}, or run as root`;
  try {
    install([debianPackage, 'fonts-dejavu-core'], 300_000);
  } catch (error) {
    return `there is no Chromium, and ${debianPackage} cannot be installed: ${messageOf(error)}`;
  }
  const installed = findProgram();
  return installed === undefined ? `${debianPackage} has no program of this name` : launch(installed);
}

function findProgram(): string | undefined {
  for (const program of programs) {
    if (program.startsWith('/')) {
      if (existsSync(program)) return program;
      continue;
    }
    const { stdout, status } = spawnSync('which', [program], { encoding: 'utf8' });
    if (status === 0) return stdout.trim();
  }
  return undefined;
}

// Chromium has no sandbox for root.
const launch = (executablePath: string): Promise<Browser> =>
  chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] });

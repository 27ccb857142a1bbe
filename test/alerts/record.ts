/**
 * Plays all outages with real services, and records what /metrics says meanwhile: as root, since it mounts a disk that gets full.
 * `node test/alerts/record.ts` takes 20 minutes; `node test/alerts/record.ts database terms` plays these two, and keeps the others.
 */
import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { readQuery } from '../metrics/promql.ts';
import { type RecordedScene, type Recording, readRecording, recordingFile } from './recording.ts';
import { alertRules } from './rules.ts';
import { scenes, scraped } from './scenes.ts';
import { readSamples, type Sample, seriesText } from './series.ts';

const intervalSeconds = 15;

/** Plays scenes at the same time, and writes what the services said. @param names of the scenes; none for all */
async function record(names: readonly string[]): Promise<void> {
  const wanted = Object.entries(scenes).filter(([name]) => names.length === 0 || names.includes(name));
  const recordings: Record<string, RecordedScene> = names.length === 0 ? {} : { ...(await readRecording()).scenes };
  await Promise.all(
    wanted.map(async ([name, { play }]) => {
      try {
        await play(async (url, happens) => {
          recordings[name] = await scrapeWhile(url, happens);
        });
      } catch (error) {
        console.error(`The scene ${name} failed:`, error);
        process.exitCode = 1;
      }
    }),
  );
  const recorded = new Date().toISOString().slice(0, 10);
  const recording: Recording = { recorded, intervalSeconds, scenes: recordings };
  const lines = JSON.stringify(recording, null, 1).replace(/\[[^\]]*\]/g, (list) => list.replace(/\s+/g, ''));
  await writeFile(recordingFile, `${lines}\n`);
}

/** The metrics that alerts query; other metrics are not recorded. */
const metrics = new Set(alertRules.flatMap(({ expr }) => readQuery(expr).selectors.map(({ metric }) => metric)));

async function scrapeWhile(
  url: string,
  happens: (stage: { readonly at: (seconds: number) => Promise<void> }) => Promise<void>,
): Promise<RecordedScene> {
  const startMs = performance.now();
  const at = (seconds: number): Promise<void> => sleep(Math.max(0, startMs + seconds * 1000 - performance.now()));
  const values: Record<string, (number | null)[]> = {};
  let isOver = false;
  const scraping = (async () => {
    for (let count = 0; !isOver; count += 1) {
      await at(count * intervalSeconds);
      for (const { labels, value } of await scrape(url)) {
        const series = seriesText({ ...labels, ...scraped });
        values[series] ??= Array.from({ length: count }, () => null);
        values[series].push(rounded(value));
      }
      for (const ofSeries of Object.values(values)) if (ofSeries.length === count) ofSeries.push(null);
    }
  })();
  try {
    await happens({ at });
  } finally {
    isOver = true;
    await scraping;
  }
  return values;
}

/** As Prometheus scrapes: a service that does not answer leaves nothing but `up`. */
async function scrape(url: string): Promise<readonly Sample[]> {
  try {
    const answer = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(10_000) });
    const samples = readSamples(await answer.text()).filter(({ labels }) => metrics.has(labels.__name__ ?? ''));
    return [...samples, { labels: { __name__: 'up' }, value: 1 }];
  } catch {
    return [{ labels: { __name__: 'up' }, value: 0 }];
  }
}

const rounded = (value: number): number => Math.round(value * 1e6) / 1e6;

await record(process.argv.slice(2));

import { buildArena } from './arena.ts';
import type { Client } from './client.ts';
import { openLedger } from './ledger.ts';
import { type Random, randomUuid } from './random.ts';
import { openSharedConsumers } from './shared_consumers.ts';
import { openWriter, type Race, type Writer } from './writer.ts';

export type RaceWithWriters = Race & { readonly writers: readonly Writer[] };

/** Prepares a race: 3 providers, and clients that want more than these have. */
export async function prepareRace(
  client: Client,
  random: Random,
  options: { readonly writers: number; readonly shared: boolean },
): Promise<RaceWithWriters> {
  const arena = await buildArena(client, random, 3);
  const uuids = (count: number) => Array.from({ length: options.shared ? count : 0 }, () => randomUuid(random));
  const race = {
    arena,
    ledger: openLedger(arena),
    shared: openSharedConsumers(uuids(2), uuids(3)),
    answers: new Map<string, number>(),
  };
  return { ...race, writers: Array.from({ length: options.writers }, () => openWriter(race, random.fork())) };
}

/** Runs all writers at the same time. Each makes `steps` requests, each to any of the servers. */
export async function runRound(
  race: RaceWithWriters,
  clients: readonly Client[],
  random: Random,
  steps: number,
): Promise<void> {
  await Promise.all(
    race.writers.map(async (writer) => {
      const choice = random.fork();
      for (let step = 0; step < steps; step++) await writer.step(choice.pick(clients));
    }),
  );
}

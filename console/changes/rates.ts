/** How many changes came in each of the last seconds, the present one at the end. @param log the newest change first */
export function ratesOf(log: readonly { readonly at: Date }[], seconds: number, now = Date.now()): readonly number[] {
  const rates = new Array<number>(seconds).fill(0);
  const present = Math.floor(now / 1000);
  for (const { at } of log) {
    const place = seconds - 1 - (present - Math.floor(at.getTime() / 1000));
    if (place < 0) break;
    rates[place] = (rates[place] ?? 0) + 1;
  }
  return rates;
}

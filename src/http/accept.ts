type Range = { readonly type: string; readonly subtype: string; readonly parameters: boolean; readonly q: number };

/** What HTTP calls a token (RFC 9110, 5.6.2). */
const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const rangePattern = new RegExp(`^(${token})/(${token})((?:\\s*;\\s*${token}(?:=(?:${token}|"[^"]*"))?)*)$`);

/**
 * The offer that an Accept header likes best, by quality and then by the order of the offers; undefined where it likes none.
 * A header that cannot be parsed accepts everything (upstream's framework treats it as absent).
 */
export function bestOffer<T extends string>(accept: string, offers: readonly T[]): T | undefined {
  const ranges = parseAccept(accept);
  if (ranges === undefined) return offers[0];
  let best: { readonly offer: T; readonly q: number } | undefined;
  for (const offer of offers) {
    const q = quality(offer, ranges);
    if (q > (best?.q ?? 0)) best = { offer, q };
  }
  return best?.offer;
}

/** Whether the header accepts this media type (without parameters). */
export const accepts = (accept: string, mediaType: string): boolean => bestOffer(accept, [mediaType]) !== undefined;

function parseAccept(accept: string): readonly Range[] | undefined {
  const ranges: Range[] = [];
  for (const part of accept.split(',')) {
    const text = part.trim();
    if (text === '') continue;
    const match = rangePattern.exec(text);
    if (match === null) return undefined;
    const [, type = '', subtype = '', parameters = ''] = match;
    if (type === '*' && subtype !== '*') return undefined;
    const weight = /;\s*q=([^;]*)/i.exec(parameters);
    if (weight !== null && !/^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight[1]?.trim() ?? '')) return undefined;
    ranges.push({
      type: type.toLowerCase(),
      subtype: subtype.toLowerCase(),
      parameters: parameters.slice(0, weight?.index ?? parameters.length).trim() !== '',
      q: weight === null ? 1 : Number(weight[1]),
    });
  }
  return ranges;
}

/** The quality by the most specific range that matches; a range with parameters matches none of our offers. */
function quality(offer: string, ranges: readonly Range[]): number {
  const [type, subtype] = offer.split('/');
  let found = { specificity: 0, q: 0 };
  for (const range of ranges) {
    if (range.parameters) continue;
    const exact = range.type === type && range.subtype === subtype;
    const specificity = exact ? 3 : range.type === type && range.subtype === '*' ? 2 : range.type === '*' ? 1 : 0;
    if (specificity > found.specificity) found = { specificity, q: range.q };
  }
  return found.q;
}

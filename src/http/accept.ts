type Range = { readonly type: string; readonly subtype: string; readonly parameters: boolean; readonly q: number };

// The parts of an Accept header, as HTTP defines them (RFC 9110, 5.6.2 and 12.5.1), as regular expressions.
const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const quoted = '"(?:[^"\\\\]|\\\\.)*"';
const weight = '[ \\t]*;[ \\t]*q=(0(?:\\.\\d{0,3})?|1(?:\\.0{0,3})?)';
const parameter = `[ \\t]*;[ \\t]*(?!q=)${token}=(?:${token}|${quoted})`;
const extension = `[ \\t]*;[ \\t]*${token}(?:=(?:${token}|${quoted}))?`;
const range = `(${token})/(${token})((?:${parameter})*)(?:${weight}(?:${extension})*)?`;
// Blanks are allowed at one position only, with or without a range: between two such positions they could be divided in as
// many ways as there are blanks, and the engine would try all of them.
const elementPattern = new RegExp(`[ \\t]*(?:${range}[ \\t]*)?(?:,|$)`, 'iy');

/**
 * The offer with the highest quality by an Accept header, and the first of several; undefined where the header accepts
 * none. A header that cannot be parsed accepts everything (upstream's framework treats it as absent).
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
  elementPattern.lastIndex = 0;
  while (elementPattern.lastIndex < accept.length) {
    const match = elementPattern.exec(accept);
    if (match === null) return undefined;
    const [, type, subtype, parameters, q] = match;
    if (type === undefined || subtype === undefined) continue;
    ranges.push({
      type: type.toLowerCase(),
      subtype: subtype.toLowerCase(),
      parameters: parameters !== '',
      q: q === undefined ? 1 : Number(q),
    });
  }
  return ranges;
}

/**
 * The quality of the most specific range that matches. A range with parameters matches no offer, since the offers have
 * no parameters.
 */
function quality(offer: string, ranges: readonly Range[]): number {
  const [type, subtype] = offer.split('/');
  let found = { specificity: 0, q: 0 };
  for (const range of ranges) {
    const specificity = specificityOf(range, type, subtype);
    if (specificity > found.specificity) found = { specificity, q: range.q };
  }
  return found.q;
}

function specificityOf(range: Range, type: string | undefined, subtype: string | undefined): number {
  if (range.type === type && range.subtype === subtype) return range.parameters ? 0 : 3;
  if (range.subtype !== '*') return 0;
  return range.type === type ? 2 : range.type === '*' ? 1 : 0;
}

/**
 * The path of a URL as upstream's router sees it: decoded, without one trailing newline. A percent sign that decoding leaves
 * is escaped again, since Hono decodes the parts it takes out.
 */
export function decodedPath(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2);
  const end = url.slice(start).search(/[?#]/);
  const path = end === -1 ? url.slice(start) : url.slice(start, start + end);
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path).replace(/\n$/, '').replaceAll('%', '%25');
  } catch {
    return path;
  }
}

// The server stores at most this many characters of a URL.
const maxLength = 2048

/** Shortens a URL that is too long: removes the query and fragment, then also the path if necessary. */
export function shortenUrl(url: string): string {
  if (url.length <= maxLength) return url
  const path = url.split(/[?#]/, 1)[0] ?? ''
  if (path.length <= maxLength) return path
  return /^[a-z][a-z\d+.-]*:\/\/[^/]*\//i.exec(path)?.[0] ?? path.slice(0, maxLength)
}

// The server stores no more characters of a URL.
const maxLength = 2048

/** Shortens a page URL: a long one loses query and fragment, then its path. */
export function sentAddress(address: string): string {
  if (address.length <= maxLength) return address
  const path = address.split(/[?#]/, 1)[0] ?? ''
  if (path.length <= maxLength) return path
  return /^[a-z][a-z\d+.-]*:\/\/[^/]*\//i.exec(path)?.[0] ?? path.slice(0, maxLength)
}

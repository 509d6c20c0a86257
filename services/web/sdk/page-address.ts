// The server stores so many characters of an address, so the rest is not even sent.
const maxLength = 2048

/** The address of a page as it is sent: a long one without query and fragment, and then without its path. */
export function sentAddress(address: string): string {
  if (address.length <= maxLength) return address
  const path = address.split(/[?#]/, 1)[0] ?? ''
  if (path.length <= maxLength) return path
  return /^[a-z][a-z\d+.-]*:\/\/[^/]*\//i.exec(path)?.[0] ?? path.slice(0, maxLength)
}

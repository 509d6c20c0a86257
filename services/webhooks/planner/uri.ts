const beforePath = /^[a-z][a-z0-9+.-]*:(?:\/\/(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=-]*)(?::\d+)?)?$/i

/**
 * The address as a URI (RFC 3986), which a receiver may insist on: browsers leave characters such as `{` and `|` as
 * they are, so those are escaped. null for what cannot be made one.
 */
export function uriOf(address: string): string | null {
  const url = URL.parse(address)
  if (!url) return null
  const { search, hash } = url
  // An empty one may still have its `?` or `#` in the href.
  url.search = ''
  url.hash = ''
  const { href, pathname } = url
  const start = href.slice(0, href.length - pathname.length)
  if (!beforePath.test(start)) return null
  return start + escaped(pathname) + escaped(search) + (hash && `#${escaped(hash.slice(1))}`)
}

function escaped(part: string): string {
  return part
    .replace(/%(?![\da-f]{2})/gi, '%25')
    .replace(/[^\w.~:/?@!$&'()*+,;=%-]/g, (character) => encodeURIComponent(character))
}

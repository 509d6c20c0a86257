/** Where a document without a page was opened: in an app there is no address, and none is made up. */
export const noPage = 'about:blank'

const maxLength = 2048

/**
 * A page's address as it is stored: an absolute URI of at most 2048 characters without user name or password.
 * What is longer loses its query and fragment, and then its path. Of addresses without a host (data:, file:,
 * blob:, ...) nothing but the scheme is kept, because the rest is content, a path on somebody's disk or a random
 * name; a blob: keeps the origin that made it. Undefined for a text that is no URL.
 */
export function storedUrl(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url) return undefined
  if (url.protocol === 'about:') return noPage
  const stored = url.host === '' || url.protocol === 'file:' ? withoutPath(url) : shortened(url)
  return stored.length <= maxLength ? stored : noPage
}

function shortened(url: URL): string {
  url.username = ''
  url.password = ''
  if (url.href.length > maxLength) {
    url.search = ''
    url.hash = ''
  }
  return url.href.length > maxLength ? withoutPath(url) : url.href
}

/** `https://host/`, `data:///`, `blob:https://host/`. */
function withoutPath({ protocol, host, origin }: URL): string {
  if (protocol === 'blob:' && origin !== 'null') return `blob:${origin}/`
  return protocol === 'file:' ? 'file:///' : `${protocol}//${host}/`
}

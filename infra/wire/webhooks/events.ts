export const subscribableTypes = [
  'session.fingerprint.calculated',
  'session.result.persisted',
  'gate.session.approved',
  'key.expiring',
  'endpoint.failing',
  'alert.opened',
  'alert.closed',
] as const
export type SubscribableType = (typeof subscribableTypes)[number]

export const deliveryTypes = [...subscribableTypes, 'webhook.test'] as const
export type DeliveryType = (typeof deliveryTypes)[number]

/** Returns the JSON body of a webhook request. `data` is JSON text and is inserted verbatim. */
export function webhookBody(event: {
  id: string
  type: DeliveryType
  created_at: number
  data: string
}): string {
  const head = JSON.stringify({
    id: event.id,
    object: 'webhook_event',
    type: event.type,
    created: new Date(event.created_at).toISOString(),
  })
  return `${head.slice(0, -1)},"data":${event.data}}`
}

const uriStart = /^[a-z][a-z0-9+.-]*:(?:\/\/(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=-]*)(?::\d+)?)?$/i

/** Returns a URL as a valid URI (RFC 3986), with characters such as `{` and `|` escaped; null if that is impossible. */
export function uriOf(address: string): string | null {
  const url = URL.parse(address)
  if (!url) return null
  const { search, hash } = url
  // Cleared even if empty, because the href may still contain a bare `?` or `#`.
  url.search = ''
  url.hash = ''
  const { href, pathname } = url
  const start = href.slice(0, href.length - pathname.length)
  if (!uriStart.test(start)) return null
  return start + escaped(pathname) + escaped(search) + (hash && `#${escaped(hash.slice(1))}`)
}

function escaped(part: string): string {
  return part
    .replace(/%(?![\da-f]{2})/gi, '%25')
    .replace(/[^\w.~:/?@!$&'()*+,;=%-]/g, (character) => encodeURIComponent(character))
}

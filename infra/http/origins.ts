/**
 * Whether a browser at this `Origin` may use a key with these allowed origins: exact ones
 * (`https://shop.example:8443`) and `https://*.shop.example`, which takes any depth of subdomain but not
 * shop.example itself. An empty list takes any origin, also none.
 */
export function originAllowed(origin: string | undefined, allowedOrigins: string[]): boolean {
  if (allowedOrigins.length === 0) return true
  const url = parseOrigin(origin)
  return url !== undefined && allowedOrigins.some((allowed) => matches(url, allowed))
}

function parseOrigin(origin: string | undefined): URL | undefined {
  if (!origin || !URL.canParse(origin)) return undefined
  const url = new URL(origin)
  // `null`, or anything with a path, user or query, is no web origin.
  return url.origin === origin.toLowerCase() ? url : undefined
}

function matches(origin: URL, allowed: string): boolean {
  const wildcard = /^https:\/\/\*(\..+)$/.exec(allowed.toLowerCase())
  if (!wildcard) return origin.origin === allowed.toLowerCase()
  return origin.protocol === 'https:' && origin.host.endsWith(wildcard[1] ?? '')
}

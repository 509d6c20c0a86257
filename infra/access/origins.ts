/**
 * Whether a browser at this `Origin` may use a key with these allowed origins: exact ones
 * (`https://shop.example:8443`) and `https://*.shop.example`, which takes any depth of subdomain but not
 * shop.example itself. They are as stored: lower case, punycode, without a default port. An empty list takes any
 * origin, also none.
 */
export function originAllowed(origin: string | undefined, allowedOrigins: string[]): boolean {
  if (allowedOrigins.length === 0) return true
  if (!origin) return false
  // What a browser sends has the stored form, so this is nearly always the end.
  if (allowedOrigins.includes(origin)) return true
  const url = parseOrigin(origin)
  return url !== undefined && allowedOrigins.some((allowed) => matches(url, allowed))
}

/** undefined for `null` (RFC 6454, 7.1), and for anything with a path, user, query or default port. */
function parseOrigin(origin: string): URL | undefined {
  const url = URL.parse(origin)
  return url?.origin === origin.toLowerCase() ? url : undefined
}

const wildcardStart = 'https://*.'

function matches(origin: URL, allowed: string): boolean {
  if (!allowed.startsWith(wildcardStart)) return origin.origin === allowed
  const suffix = allowed.slice(wildcardStart.length - 1)
  return origin.protocol === 'https:' && origin.host.endsWith(suffix) && origin.host.length > suffix.length
}

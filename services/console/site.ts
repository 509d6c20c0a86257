import type { FastifyRequest } from 'fastify'
import { isLoopback } from '../../infra/ip/network.ts'
import { isLocalhost } from '../../infra/safe-http/addresses.ts'
import { consoleRefusedError } from './decide.ts'

export interface Site {
  /** In the format of the `Origin` header. */
  origin: string
  cookie: { name: string; secure: boolean }
}

/** As Fastify sees them with the trusted-proxy rules. */
type RequestAddress = Pick<FastifyRequest, 'protocol' | 'host'>

/**
 * Returns the origin that the browser sees, and its session cookie. Throws 403 for plain HTTP except on localhost,
 * because anyone on the network could steal the session. Requests to the host of an https PUBLIC_URL count as HTTPS,
 * because an untrusted proxy may terminate TLS. That is safe: over plain HTTP, browsers drop a Secure cookie.
 */
export function requireSecureSite({ protocol, host }: RequestAddress, publicUrl: string): Site {
  const publicSite = new URL(publicUrl)
  const requestSite = URL.parse(`${protocol}://${host}`)
  const site =
    publicSite.protocol === 'https:' && host === publicSite.host ? publicSite : requestSite
  if (site?.protocol === 'https:')
    return { origin: site.origin, cookie: { name: '__Host-tidegate_console', secure: true } }
  if (site && isLoopbackHost(site.hostname))
    return { origin: site.origin, cookie: { name: 'tidegate_console', secure: false } }
  throw consoleRefusedError(
    'The console needs HTTPS, except on localhost: set PUBLIC_URL to an https URL, let a proxy in TRUSTED_PROXIES report HTTPS, or open http://127.0.0.1.',
  )
}

function isLoopbackHost(hostname: string): boolean {
  return isLocalhost(hostname) || isLoopback(hostname.replace(/^\[|\]$/g, ''))
}

const safeMethods = ['GET', 'HEAD']

export const isMutation = ({ method }: Pick<FastifyRequest, 'method'>): boolean =>
  !safeMethods.includes(method)

/** Throws 403 for a request from another origin. Browsers send `Origin` with every request except GET and HEAD. */
export function checkSameOrigin(
  { origin }: Site,
  { headers }: Pick<FastifyRequest, 'headers'>,
): void {
  const fetchSite = headers['sec-fetch-site']
  if (headers.origin === origin && (fetchSite === undefined || fetchSite === 'same-origin')) return
  throw consoleRefusedError('The request came from an origin other than the console.')
}

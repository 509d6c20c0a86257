import type { FastifyRequest } from 'fastify'
import { isLoopback } from '../../infra/ip/network.ts'
import { isLocalhost } from '../../infra/safe-http/addresses.ts'
import { consoleRefusal } from './decide.ts'

export interface Site {
  /** Origin as browsers send it in the `Origin` header. */
  origin: string
  cookie: { name: string; secure: boolean }
}

/** Scheme and host of a request, after Fastify has applied the trusted-proxy rules. */
type RequestAddress = Pick<FastifyRequest, 'protocol' | 'host'>

/**
 * Returns the origin that the browser sees, and its session cookie. An https PUBLIC_URL also counts when an untrusted
 * proxy terminates TLS: over plain HTTP, the browser would drop the Secure cookie. 403 for plain HTTP except on
 * localhost, because anybody on the network could steal the session.
 */
export function siteOf({ protocol, host }: RequestAddress, publicUrl: string): Site {
  const publicSite = new URL(publicUrl)
  const requestSite = URL.parse(`${protocol}://${host}`)
  const site =
    publicSite.protocol === 'https:' && host === publicSite.host ? publicSite : requestSite
  if (site?.protocol === 'https:')
    return { origin: site.origin, cookie: { name: '__Host-tidegate_console', secure: true } }
  if (site && isThisMachine(site.hostname))
    return { origin: site.origin, cookie: { name: 'tidegate_console', secure: false } }
  throw consoleRefusal(
    'The console needs HTTPS, except on localhost: set PUBLIC_URL to an https URL, let a proxy in TRUSTED_PROXIES report HTTPS, or open http://127.0.0.1.',
  )
}

function isThisMachine(hostname: string): boolean {
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
  throw consoleRefusal('The request came from an origin other than the console.')
}

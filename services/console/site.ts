import type { FastifyRequest } from 'fastify'
import { isLoopback } from '../../infra/ip/network.ts'
import { isLocalhost } from '../../infra/safe-http/addresses.ts'
import { consoleRefusal } from './decide.ts'

export interface Site {
  /** As browsers send it in `Origin`. */
  origin: string
  cookie: { name: string; secure: boolean }
}

/** What `FastifyRequest` says by the rules for trusted proxies. */
type Addressed = Pick<FastifyRequest, 'protocol' | 'host'>

/**
 * The site that the browser sees, and the session's cookie there. PUBLIC_URL says that it is HTTPS where a proxy that is
 * not trusted ends TLS: a browser for which that is not so drops the cookie. 403 for plain HTTP elsewhere than on this
 * machine, because whoever is in between could take the session.
 */
export function siteOf({ protocol, host }: Addressed, publicUrl: string): Site {
  const known = new URL(publicUrl)
  const seen = URL.parse(`${protocol}://${host}`)
  const site = known.protocol === 'https:' && host === known.host ? known : seen
  if (site?.protocol === 'https:')
    return { origin: site.origin, cookie: { name: '__Host-tidegate_console', secure: true } }
  if (site && isThisMachine(site.hostname))
    return { origin: site.origin, cookie: { name: 'tidegate_console', secure: false } }
  throw consoleRefusal(
    'The console needs HTTPS, except on this machine itself: set PUBLIC_URL to an https address, or let a proxy of TRUSTED_PROXIES say so, or open it at http://127.0.0.1.',
  )
}

function isThisMachine(hostname: string): boolean {
  return isLocalhost(hostname) || isLoopback(hostname.replace(/^\[|\]$/g, ''))
}

const reading = ['GET', 'HEAD']

export const changes = ({ method }: Pick<FastifyRequest, 'method'>): boolean =>
  !reading.includes(method)

/** 403 for what another page sends. Browsers name the page's origin with every request that is no GET or HEAD. */
export function checkSameOrigin(
  { origin }: Site,
  { headers }: Pick<FastifyRequest, 'headers'>,
): void {
  const fetchSite = headers['sec-fetch-site']
  if (headers.origin === origin && (fetchSite === undefined || fetchSite === 'same-origin')) return
  throw consoleRefusal('The request came from another origin than the console itself.')
}

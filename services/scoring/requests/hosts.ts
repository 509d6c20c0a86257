import { isOriginAllowed } from '../../../infra/access/key-checks.ts'
import type { EdgeRequest } from './decide.ts'

interface HostLists {
  /** Allowed origins of publishable keys. `https://*.shop.example` covers all subdomains. */
  origins: readonly string[]
  /** The setting FIRST_PARTY_URLS. */
  firstPartyUrls: readonly string[]
}

/** Returns the hosts of the organization and of this installation, each as an https origin without a port. */
export const listedHosts = ({ origins, firstPartyUrls }: HostLists): string[] =>
  [...origins, ...firstPartyUrls].map((url) => `https://${new URL(url).hostname}`)

/** Returns true if the host is listed, regardless of port and scheme. */
export function isListedHost(
  { scheme, authority }: Pick<EdgeRequest, 'scheme' | 'authority'>,
  listed: string[],
): boolean {
  const { hostname } = new URL(`${scheme}://${authority}`)
  // An empty list would allow every origin.
  return listed.length > 0 && isOriginAllowed(`https://${hostname}`, listed)
}

import { originAllowed } from '../../../infra/access/key-checks.ts'
import type { EdgeRequest } from './decide.ts'

interface HostLists {
  /** Allowed origins of publishable keys; `https://*.shop.example` has every subdomain. */
  origins: readonly string[]
  /** FIRST_PARTY_URLS. */
  firstPartyUrls: readonly string[]
}

/** The hosts that the organization or this installation names, each as an https origin without a port. */
export const listedHosts = ({ origins, firstPartyUrls }: HostLists): string[] =>
  [...origins, ...firstPartyUrls].map((url) => `https://${new URL(url).hostname}`)

/** Whether the host is one of those, whatever its port and scheme. */
export function isListedHost(
  { scheme, authority }: Pick<EdgeRequest, 'scheme' | 'authority'>,
  listed: string[],
): boolean {
  const { hostname } = new URL(`${scheme}://${authority}`)
  // An empty list would allow every origin.
  return listed.length > 0 && originAllowed(`https://${hostname}`, listed)
}

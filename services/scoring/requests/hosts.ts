import { originAllowed } from '../../../infra/access/key-checks.ts'
import type { EdgeRequest } from './decide.ts'

interface ListedHosts {
  /** Allowed origins of publishable keys; `https://*.shop.example` has every subdomain. */
  origins: readonly string[]
  /** FIRST_PARTY_URLS. */
  firstPartyUrls: readonly string[]
}

/** Whether the host is one that the organization or this installation names, whatever its port and scheme. */
export function isListedHost(
  { scheme, authority }: Pick<EdgeRequest, 'scheme' | 'authority'>,
  { origins, firstPartyUrls }: ListedHosts,
): boolean {
  const { hostname } = new URL(`${scheme}://${authority}`)
  const listed = [...origins, ...firstPartyUrls].map((url) => `https://${new URL(url).hostname}`)
  // An empty list would allow every origin.
  return listed.length > 0 && originAllowed(`https://${hostname}`, listed)
}

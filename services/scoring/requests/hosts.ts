import { originAllowed } from '../../../infra/access/key-checks.ts'
import type { EdgeRequest } from './decide.ts'

interface ListedHosts {
  /** Allowed origins of publishable keys; `https://*.shop.example` has every subdomain. */
  origins: readonly string[]
  /** FIRST_PARTY_URLS. */
  firstPartyUrls: readonly string[]
}

/** Whether the host is one that the organization or this installation names, over whichever of http and https. */
export function isListedHost(
  { scheme, authority }: Pick<EdgeRequest, 'scheme' | 'authority'>,
  { origins, firstPartyUrls }: ListedHosts,
): boolean {
  const { host } = new URL(`${scheme}://${authority}`)
  const listed = [...origins, ...firstPartyUrls.map((url) => new URL(url).origin)]
  // An empty list would allow every origin.
  return listed.length > 0 && ['https', 'http'].some((one) => originAllowed(`${one}://${host}`, listed))
}

import ipaddr from 'ipaddr.js'
import type { Config } from '../../infra/config.ts'

type Address = Pick<Config, 'HOST' | 'PUBLIC_URL'>

/**
 * Where clients reach a server that listens on the port, as browsers write it: PUBLIC_URL, else the address listened
 * on; where that is every address, this machine's own. Throws for a HOST that no URL can name.
 */
export function publicUrlOf({ HOST, PUBLIC_URL }: Address, port: number): string {
  if (PUBLIC_URL !== undefined) return PUBLIC_URL
  const host = listensEverywhere(HOST) ? '127.0.0.1' : HOST
  const url = `http://${ipaddr.IPv6.isValid(host) ? `[${host}]` : host}:${port}`
  if (URL.canParse(url)) return new URL(url).origin
  throw new Error(`PUBLIC_URL is not set, and HOST ${HOST} cannot be part of an address that browsers use.`)
}

/**
 * Whether anybody but this machine can open Gate's consent pages: they work at one address only, which links to them,
 * their key and their proofs name.
 */
export function hasConsentAddress({ HOST, PUBLIC_URL }: Address): boolean {
  if (PUBLIC_URL === undefined) return !listensEverywhere(HOST)
  // Everything that the pages load is at the root.
  return new URL(PUBLIC_URL).pathname === '/'
}

function listensEverywhere(host: string): boolean {
  // Node takes none for all, too.
  if (host === '') return true
  return ipaddr.isValid(host) && ipaddr.process(host).range() === 'unspecified'
}

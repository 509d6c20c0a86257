import ipaddr from 'ipaddr.js'
import maxmind, { type Reader, type Response } from 'maxmind'
import type { IpVersion, Network } from '../../schemas/events.ts'
import { isPublicAddress, plainAddress } from './address.ts'
import { anonymityOf, type IpRecord, locationOf, routingOf } from './records.ts'

/** What is known about addresses. Nothing is invented: without a database everything is null and `skipped`. */
export interface NetworkSource {
  /** `at` = epoch milliseconds of the evaluation. Never throws: a database that fails is the status `error`. */
  lookup(ip: string, at: number): Network
}

export interface NetworkOptions {
  /** Path of a city or country database in MMDB form. */
  cityPath?: string | undefined
  /** Path of an ASN database in MMDB form. */
  asnPath?: string | undefined
  /** Path of an anonymous-IP database in MMDB form. */
  anonymousPath?: string | undefined
}

/**
 * Reads the configured databases into memory, once for all who ask; rejects when one cannot be read, since answers
 * without it would look complete.
 */
export async function openNetwork({
  cityPath,
  asnPath,
  anonymousPath,
}: NetworkOptions): Promise<NetworkSource> {
  const city = await openDatabase(cityPath)
  const asn = await openDatabase(asnPath)
  const anonymous = await openDatabase(anonymousPath)
  if (!city && !asn && !anonymous) return noNetwork
  return {
    lookup(address, at) {
      const ip = plainAddress(address)
      if (!isPublicAddress(ip)) return unknownNetwork(ip)
      try {
        const records = { city: city?.(ip), asn: asn?.(ip), anonymous: anonymous?.(ip) }
        return readNetwork({ ip, at, ...records })
      } catch {
        return { ...unknownNetwork(ip), status: 'error' }
      }
    },
  }
}

/** No database is configured. */
export const noNetwork: NetworkSource = { lookup: (address) => unknownNetwork(plainAddress(address)) }

async function openDatabase(path: string | undefined) {
  if (!path) return undefined
  const reader: Reader<Response> = await maxmind.open(path)
  // The reader would look an IPv6 address up by its first 32 bits in a database of IPv4 networks.
  const holds = (ip: string) => reader.metadata.ipVersion === 6 || ipaddr.IPv4.isValid(ip)
  return (ip: string): IpRecord => (holds(ip) ? reader.get(ip) : null)
}

interface Found {
  ip: string
  at: number
  city: IpRecord
  asn: IpRecord
  anonymous: IpRecord
}

function readNetwork({ ip, at, city, asn, anonymous }: Found): Network {
  const known: Network = {
    ...unknownNetwork(ip),
    status: 'ready',
    location: city ? locationOf(city) : null,
    routing: routingOf(asn),
    anonymity: anonymityOf([city, anonymous]),
    evaluated_at: at,
  }
  const evidence = { ...known.evidence, risk_signals: riskSignalsOf(known.anonymity) }
  return { ...known, evidence, summary: summaryOf(known) }
}

type AnonymityFlag = Exclude<keyof Network['anonymity'], 'provider'>

/** The most telling first. */
const sentences: [AnonymityFlag, string][] = [
  ['tor', 'This IP is a Tor exit node.'],
  ['vpn', 'This IP appears associated with VPN traffic.'],
  ['relay', 'This IP belongs to a privacy relay.'],
  ['residential_proxy', 'This IP appears associated with a residential proxy.'],
  ['proxy', 'This IP is a public proxy.'],
  ['callback_proxy', 'This IP appears associated with a callback proxy.'],
  ['hosting', 'This IP belongs to a hosting provider.'],
]

function riskSignalsOf(anonymity: Network['anonymity']): string[] {
  return sentences.flatMap(([flag]) => (anonymity[flag] ? [flag] : []))
}

/** One sentence for people; null when nothing is known. */
function summaryOf({ anonymity, location, routing }: Network): string | null {
  const telling = sentences.find(([flag]) => anonymity[flag])
  if (telling) return telling[1]
  const place = [location?.city, location?.country ?? location?.country_code].filter(Boolean).join(', ')
  if (place) return `This IP is located in ${place}.`
  const operator = routing.organization ?? (routing.asn && `AS${routing.asn}`)
  return operator ? `This IP belongs to ${operator}.` : null
}

function unknownNetwork(ip: string): Network {
  return {
    ip_address: ip || null,
    ip_version: ipVersion(ip),
    status: 'skipped',
    summary: null,
    location: null,
    routing: { asn: null, organization: null },
    anonymity: anonymityOf([]),
    reputation: { listed: false, categories: [], suspicious_network: false },
    evidence: { risk_signals: [], operator_tags: [], client_types: [], client_count: null },
    evaluated_at: null,
  }
}

function ipVersion(ip: string): IpVersion | null {
  return ipaddr.isValid(ip) ? ipaddr.parse(ip).kind() : null
}

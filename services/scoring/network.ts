import ipaddr from 'ipaddr.js'
import maxmind, { type AnonymousIPResponse, type AsnResponse, type CityResponse } from 'maxmind'
import type { IpVersion, Network } from '../../schemas/events.ts'
import { plainAddress } from './address.ts'

/** What is known about addresses. Nothing is invented: without a database everything is null and `skipped`. */
export interface NetworkSource {
  /** `at` = epoch milliseconds of the evaluation. Never throws. */
  lookup(ip: string, at: number): Network
}

export interface NetworkOptions {
  /** Path of a MaxMind-format city database. */
  cityPath?: string | undefined
  /** Path of a MaxMind-format ASN database. */
  asnPath?: string | undefined
  /** Path of an anonymous-IP database in MaxMind format. */
  anonymousPath?: string | undefined
}

/**
 * What a database says about anonymity: at the root of a record in anonymous-IP databases, under `traits` in
 * enterprise ones, nowhere in plain city ones. dev.maxmind.com/geoip/docs/databases/anonymous-ip
 */
type Flags = Record<string, unknown>
type CityRecord = CityResponse & Flags & { traits?: Flags }
type AnonymousRecord = AnonymousIPResponse & Flags & { traits?: Flags }
type AsnRecord = AsnResponse

/** Opens the configured databases; rejects when one cannot be read, since scoring without it would look complete. */
export async function openNetwork({
  cityPath,
  asnPath,
  anonymousPath,
}: NetworkOptions): Promise<NetworkSource> {
  const city = cityPath ? await maxmind.open<CityRecord>(cityPath) : undefined
  const asn = asnPath ? await maxmind.open<AsnRecord>(asnPath) : undefined
  const anonymous = anonymousPath ? await maxmind.open<AnonymousRecord>(anonymousPath) : undefined
  if (!city && !asn && !anonymous) return noNetwork
  return {
    lookup(address, at) {
      const ip = plainAddress(address)
      if (!isPublic(ip)) return unknownNetwork(ip)
      try {
        const records = { city: city?.get(ip), asn: asn?.get(ip), anonymous: anonymous?.get(ip) }
        return readNetwork({ ip, at, ...records })
      } catch {
        return { ...unknownNetwork(ip), status: 'error' }
      }
    },
  }
}

/** No database is configured. */
export const noNetwork: NetworkSource = { lookup: (address) => unknownNetwork(plainAddress(address)) }

interface Found {
  ip: string
  at: number
  city: CityRecord | null | undefined
  asn: AsnRecord | null | undefined
  anonymous: AnonymousRecord | null | undefined
}

function readNetwork({ ip, at, city, asn, anonymous }: Found): Network {
  const known: Network = {
    ...unknownNetwork(ip),
    status: 'ready',
    location: city ? locationOf(city) : null,
    routing: {
      asn: asn ? String(asn.autonomous_system_number) : null,
      organization: asn?.autonomous_system_organization ?? null,
    },
    anonymity: anonymityOf([city, city?.traits, anonymous, anonymous?.traits]),
    evaluated_at: at,
  }
  const evidence = { ...known.evidence, risk_signals: riskSignalsOf(known.anonymity) }
  return { ...known, evidence, summary: summaryOf(known) }
}

function locationOf({ city, subdivisions, country, location, postal }: CityRecord): Network['location'] {
  return {
    city: city?.names.en ?? null,
    region: subdivisions?.[0]?.names.en ?? null,
    country: country?.names.en ?? null,
    country_code: country?.iso_code ?? null,
    latitude: location?.latitude ?? null,
    longitude: location?.longitude ?? null,
    timezone: location?.time_zone ?? null,
    postal_code: postal?.code ?? null,
    accuracy_radius_km: location?.accuracy_radius ?? null,
  }
}

/** Only what a database says. */
function anonymityOf(places: (Flags | null | undefined)[]): Network['anonymity'] {
  const says = (name: string) => places.some((flags) => flags?.[name] === true)
  const providers = places.map((flags) => flags?.provider_name)
  return {
    vpn: says('is_anonymous_vpn'),
    proxy: says('is_public_proxy') || says('is_anonymous_proxy'),
    tor: says('is_tor_exit_node'),
    relay: false,
    hosting: says('is_hosting_provider'),
    residential_proxy: says('is_residential_proxy'),
    callback_proxy: false,
    provider: providers.find((name) => typeof name === 'string') ?? null,
  }
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

function isPublic(ip: string): boolean {
  return ipaddr.isValid(ip) && ipaddr.parse(ip).range() === 'unicast'
}

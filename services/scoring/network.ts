import ipaddr from 'ipaddr.js'
import maxmind, { type AsnResponse, type CityResponse, type Reader } from 'maxmind'
import type { IpVersion, Network } from '../../schemas/events.ts'

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
}

/** Traits that some databases carry next to the location. */
type CityRecord = CityResponse & { traits?: Record<string, unknown> }

/** Opens the configured databases; rejects when one cannot be read, since scoring without it would look complete. */
export async function openNetwork({ cityPath, asnPath }: NetworkOptions): Promise<NetworkSource> {
  const city = cityPath ? await maxmind.open<CityRecord>(cityPath) : undefined
  const asn = asnPath ? await maxmind.open<AsnResponse>(asnPath) : undefined
  if (!city && !asn) return noNetwork
  return {
    lookup(ip, at) {
      const version = ipVersion(ip)
      if (!version || !isPublic(ip)) return unknownNetwork(ip)
      try {
        return readNetwork({ ip, at, city: lookUp(city, ip), asn: lookUp(asn, ip) })
      } catch {
        return { ...unknownNetwork(ip), status: 'error' }
      }
    },
  }
}

/** No database is configured. */
export const noNetwork: NetworkSource = { lookup: (ip) => unknownNetwork(ip) }

function lookUp<T extends CityRecord | AsnResponse>(reader: Reader<T> | undefined, ip: string): T | null {
  return reader?.get(ip) ?? null
}

interface Found {
  ip: string
  at: number
  city: CityRecord | null
  asn: AsnResponse | null
}

function readNetwork({ ip, at, city, asn }: Found): Network {
  return {
    ...unknownNetwork(ip),
    status: 'ready',
    location: city ? locationOf(city) : null,
    routing: {
      asn: asn ? String(asn.autonomous_system_number) : null,
      organization: asn?.autonomous_system_organization ?? null,
    },
    anonymity: anonymityOf(city?.traits ?? {}),
    evaluated_at: at,
  }
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

/** Only what the database says; plain city databases say nothing. */
function anonymityOf(traits: Record<string, unknown>): Network['anonymity'] {
  const says = (name: string) => traits[name] === true
  return {
    vpn: says('is_anonymous_vpn'),
    proxy: says('is_public_proxy') || says('is_anonymous_proxy'),
    tor: says('is_tor_exit_node'),
    relay: false,
    hosting: says('is_hosting_provider'),
    residential_proxy: says('is_residential_proxy'),
    callback_proxy: false,
    provider: null,
  }
}

function unknownNetwork(ip: string): Network {
  return {
    ip_address: ip || null,
    ip_version: ipVersion(ip),
    status: 'skipped',
    summary: null,
    location: null,
    routing: { asn: null, organization: null },
    anonymity: anonymityOf({}),
    reputation: { listed: false, categories: [], suspicious_network: false },
    evidence: { risk_signals: [], operator_tags: [], client_types: [], client_count: null },
    evaluated_at: null,
  }
}

function ipVersion(ip: string): IpVersion | null {
  return ipaddr.isValid(ip) ? ipaddr.parse(ip).kind() : null
}

function isPublic(ip: string): boolean {
  return ipaddr.process(ip).range() === 'unicast'
}

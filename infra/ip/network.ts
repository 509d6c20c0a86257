import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Reader, Response } from 'maxmind'
import maxmind from 'maxmind'
import type { Network } from '../../schemas/events.ts'
import { orUndefined } from '../text.ts'
import type { AddressData } from './data/file.ts'
import { parseAddress } from './data/ranges.ts'
import { type AddressRecords, listedOperators, recordsAt } from './data/read.ts'
import { type Reputation, type ReputationList, reputationOf } from './data/reputation.ts'
import { anonymityOf, type IpRecord, locationOf, operatorEvidenceOf, routingOf } from './records.ts'

/**
 * Sources of IP data. `address_lists` are the lists in the IP data file, `reputation_lists` are configured by the
 * operator.
 */
export const ipSources = [
  'location_database',
  'routing_database',
  'anonymity_database',
  'address_lists',
  'reputation_lists',
] as const
export type IpSource = (typeof ipSources)[number]

export interface AddressNetwork extends Network {
  /** Sources that were searched, whether or not they knew the address. */
  sources: IpSource[]
}

/**
 * Looks up IP addresses. Without databases, everything is null. The status is `ready` only if lists of hosting networks
 * and Tor exits were searched, because without them those flags are always false.
 */
export interface NetworkSource {
  /** `at`: time of the lookup for `evaluated_at`, epoch milliseconds. */
  lookup(ip: string, at: number): AddressNetwork
  /** Names of unset database settings, unless there is an IP data file. */
  missing: string[]
  /**
   * Returns the name of the crawler whose published ranges contain the address (`Googlebot`); null = none of
   * `listedOperators`.
   */
  botOperatorAt(ip: string): string | null
  /** Returns the crawlers, VPNs and relays whose ranges are listed (`Googlebot`, `Mullvad`, `Apple Private Relay`). */
  listedOperators(): ReadonlySet<string>
}

interface NetworkOptions extends Partial<Record<DatabasePath, string | undefined>> {
  /** Returns the current IP data file, which is used where there is no configured database. */
  addresses?: (() => AddressData) | undefined
  /** Returns the operator's current reputation lists. */
  lists?: (() => readonly ReputationList[]) | undefined
}

type DatabasePath = 'cityPath' | 'asnPath' | 'anonymousPath'

function missingSettings({
  cityPath,
  asnPath,
  anonymousPath,
  addresses,
}: NetworkOptions): string[] {
  if (addresses) return []
  const paths = { CITY_MMDB: cityPath, ASN_MMDB: asnPath, ANONYMOUS_MMDB: anonymousPath }
  return Object.entries(paths).flatMap(([setting, path]) => (path ? [] : setting))
}

/**
 * Reads the configured databases into memory, once per process. Rejects if one cannot be read, because results without
 * that database would look complete.
 */
export async function openNetwork(options: NetworkOptions): Promise<NetworkSource> {
  const missing = missingSettings(options)
  if (missing.length === noNetwork.missing.length && !options.lists) return noNetwork
  const city = await openDatabase(options.cityPath)
  const asn = await openDatabase(options.asnPath)
  const anonymous = await openDatabase(options.anonymousPath)
  const { addresses, lists = () => [] } = options
  return {
    missing,
    ...operatorLookups(addresses),
    lookup(address, at) {
      const parsed = readAddress(address)
      const unknown = unknownNetwork(address, parsed)
      if (!isPublic(parsed)) return unknown
      const ip = parsed.toString()
      try {
        const databases = { city: city?.(ip), asn: asn?.(ip), anonymous: anonymous?.(ip) }
        const file = addresses && recordsAt(addresses(), ip)
        return readNetwork(unknown, at, { databases, file, reputation: reputationIn(lists(), ip) })
      } catch {
        return { ...unknown, status: 'error' }
      }
    },
  }
}

function operatorLookups(
  addresses: NetworkOptions['addresses'],
): Pick<NetworkSource, 'botOperatorAt' | 'listedOperators'> {
  return {
    botOperatorAt(address) {
      const parsed = readAddress(address)
      return addresses && isPublic(parsed) ? recordsAt(addresses(), parsed.toString()).bot : null
    },
    listedOperators: () => (addresses ? listedOperators(addresses()) : new Set()),
  }
}

export const noNetwork: NetworkSource = {
  missing: missingSettings({}),
  ...operatorLookups(undefined),
  lookup: (address) => unknownNetwork(address, readAddress(address)),
}

async function openDatabase(path: string | undefined) {
  if (!path) return undefined
  const reader: Reader<Response> = await maxmind.open(path)
  // In a database of IPv4 networks the reader would look up an IPv6 address by its first 32 bits.
  const hasVersionOf = (ip: string) => reader.metadata.ipVersion === 6 || ipaddr.IPv4.isValid(ip)
  return (ip: string): IpRecord => (hasVersionOf(ip) ? reader.get(ip) : undefined)
}

interface Records {
  /** Records of the configured databases, which take precedence. */
  databases: Record<'city' | 'asn' | 'anonymous', IpRecord>
  /** Records of the IP data file. */
  file: AddressRecords | undefined
  /** undefined = there are no lists. */
  reputation: Reputation | undefined
}

const reputationIn = (lists: readonly ReputationList[], ip: string): Reputation | undefined =>
  lists.length > 0 ? reputationOf(lists, ip) : undefined

function readNetwork(
  unknown: AddressNetwork,
  at: number,
  { databases, file, reputation }: Records,
): AddressNetwork {
  const { anonymous } = databases
  const city = databases.city === undefined ? file?.city : databases.city
  const asn = databases.asn === undefined ? file?.asn : databases.asn
  const searched = {
    location_database: city,
    routing_database: asn,
    anonymity_database: anonymous,
    address_lists: file?.anonymous,
    reputation_lists: reputation,
  }
  const sources = ipSources.filter((source) => searched[source] !== undefined)
  if (sources.length === 0) return unknown
  const network: AddressNetwork = {
    ...unknown,
    sources,
    status: knowsAnonymity(sources) ? 'ready' : 'skipped',
    location: city ? locationOf(city) : null,
    routing: routingOf(asn),
    anonymity: anonymityOf(
      [city, anonymous === undefined ? file?.anonymous : anonymous],
      file?.anonymous,
    ),
    ...(reputation && { reputation }),
    evaluated_at: at,
  }
  const risk_signals = flagSentences.flatMap(([flag]) => (network.anonymity[flag] ? [flag] : []))
  const operator = operatorEvidenceOf(risk_signals, { city, listed: file?.anonymous })
  const evidence = { ...network.evidence, ...operator, risk_signals }
  return { ...network, evidence, summary: summaryOf(network) }
}

const knowsAnonymity = (sources: IpSource[]): boolean =>
  sources.includes('anonymity_database') || sources.includes('address_lists')

const flagSentences: [Exclude<keyof Network['anonymity'], 'provider'>, string][] = [
  ['tor', 'This IP is a Tor exit node.'],
  ['vpn', 'This IP appears associated with VPN traffic.'],
  ['relay', 'This IP belongs to a privacy relay.'],
  ['residential_proxy', 'This IP appears associated with a residential proxy.'],
  ['proxy', 'This IP is a public proxy.'],
  ['callback_proxy', 'This IP appears associated with a callback proxy.'],
  ['hosting', 'This IP belongs to a hosting provider.'],
]

function summaryOf({ anonymity, reputation, location, routing }: Network): string | null {
  const first = flagSentences.find(([flag]) => anonymity[flag])
  if (first) return first[1]
  if (reputation.listed) return 'This IP is on a list of addresses with a bad reputation.'
  const place = [location?.city, location?.country ?? location?.country_code]
    .filter(Boolean)
    .join(', ')
  if (place) return `This IP is located in ${place}.`
  const operator = routing.organization ?? (routing.asn && `AS${routing.asn}`)
  return operator ? `This IP belongs to ${operator}.` : null
}

function unknownNetwork(address: string, parsed: ParsedAddress | undefined): AddressNetwork {
  return {
    ip_address: parsed?.toString() ?? (address || null),
    ip_version: parsed?.kind() ?? null,
    status: 'skipped',
    summary: null,
    location: null,
    routing: { asn: null, organization: null },
    anonymity: anonymityOf([]),
    reputation: { listed: false, categories: [], suspicious_network: false },
    evidence: { risk_signals: [], operator_tags: [], client_types: [], client_count: null },
    evaluated_at: null,
    sources: [],
  }
}

type ParsedAddress = ReturnType<typeof parseAddress>

// Returns undefined if the text is not an address. Parsing takes longer than a lookup, so parse only once.
const readAddress = (ip: string): ParsedAddress | undefined => orUndefined(() => parseAddress(ip))

/** Returns the address in its usual form: IPv4 for IPv4-mapped IPv6 (`::ffff:203.0.113.9`). Other text is unchanged. */
export const plainAddress = (ip: string): string => readAddress(ip)?.toString() ?? ip

/** Returns the prefix of an address: IPv4 /24, or IPv6 /48 in hex; null if it is not an address. */
export function networkPrefix(ip: string): string | null {
  const address = readAddress(ip)
  if (!address) return null
  const bytes = address.toByteArray()
  if (address.kind() === 'ipv4') return bytes.slice(0, 3).join('.')
  return Buffer.from(bytes.slice(0, 6)).toString('hex')
}

/** Returns the first address of the IPv4 /24 or IPv6 /48: `203.0.113.0`, `2001:db8:7::`. Other text is unchanged. */
export function shortenedAddress(ip: string): string {
  const address = readAddress(ip)
  if (!address) return ip
  const prefixBytes = address.kind() === 'ipv4' ? 3 : 6
  const bytes = address.toByteArray().map((byte, i) => (i < prefixBytes ? byte : 0))
  return ipaddr.fromByteArray(bytes).toString()
}

/** Returns true for a loopback address. */
export const isLoopback = (ip: string): boolean => readAddress(ip)?.range() === 'loopback'

// Returns true for an address outside IANA's special-purpose ranges.
const isPublic = (ip: ParsedAddress | undefined): ip is ParsedAddress => ip?.range() === 'unicast'

// The range from which IANA assigns addresses (RFC 4291, section 2.4); all other IPv6 addresses are special or unused.
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Returns true for a public address in canonical notation: IPv4 as four decimal numbers (not `127.1`, `0x7f000001` or
 * `010.0.0.1`), IPv6 without a zone (`%eth0`).
 */
export function isCanonicalPublicAddress(text: string): boolean {
  const parsed = readAddress(text)
  if (!isPublic(parsed)) return false
  return parsed instanceof ipaddr.IPv4
    ? isIPv4(text)
    : !text.includes('%') && parsed.match(globalUnicast)
}

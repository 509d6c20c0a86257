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
import { anonymityOf, type IpRecord, locationOf, operatorOf, routingOf } from './records.ts'

/**
 * What was searched, by what it says of an address. `address_lists` are those of the file of addresses, `reputation_lists`
 * an operator's own.
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
  /** What was searched, whether or not it knew the address. */
  sources: IpSource[]
}

/**
 * What is known about addresses. Nothing is invented: without databases everything is null. The status is `ready` only
 * where lists of hosting networks and Tor exits were searched, since these flags are false without them.
 */
export interface NetworkSource {
  lookup(ip: string, at: number): AddressNetwork
  /** Settings that name no database, where the file of addresses does not stand for it. */
  missing: string[]
  /**
   * The crawler among whose published ranges the address is, by the list's name for it (`Googlebot`); null = none of
   * `listedOperators`.
   */
  botOperatorAt(ip: string): string | null
  /** The crawlers, VPNs and relays whose ranges are listed (`Googlebot`, `Mullvad`, `Apple Private Relay`). */
  listedOperators(): ReadonlySet<string>
}

interface NetworkOptions extends Partial<Record<DatabasePath, string | undefined>> {
  /** The file of addresses, as it is now. It says what no database of the settings says. */
  addresses?: (() => AddressData) | undefined
  /** Lists that the operator keeps, as they are now. */
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
 * Reads the configured databases into memory, once for the process. Rejects when one cannot be read, since
 * answers without it would look complete.
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
    ...listsOf(addresses),
    lookup(address, at) {
      const read = readAddress(address)
      const unknown = unknownNetwork(address, read)
      if (!isPublic(read)) return unknown
      const ip = read.toString()
      try {
        const own = { city: city?.(ip), asn: asn?.(ip), anonymous: anonymous?.(ip) }
        const listed = addresses && recordsAt(addresses(), ip)
        return readNetwork(unknown, at, { own, listed, reputation: reputationIn(lists(), ip) })
      } catch {
        return { ...unknown, status: 'error' }
      }
    },
  }
}

function listsOf(
  addresses: NetworkOptions['addresses'],
): Pick<NetworkSource, 'botOperatorAt' | 'listedOperators'> {
  return {
    botOperatorAt(address) {
      const read = readAddress(address)
      return addresses && isPublic(read) ? recordsAt(addresses(), read.toString()).bot : null
    },
    listedOperators: () => (addresses ? listedOperators(addresses()) : new Set()),
  }
}

export const noNetwork: NetworkSource = {
  missing: missingSettings({}),
  ...listsOf(undefined),
  lookup: (address) => unknownNetwork(address, readAddress(address)),
}

async function openDatabase(path: string | undefined) {
  if (!path) return undefined
  const reader: Reader<Response> = await maxmind.open(path)
  // The reader would look an IPv6 address up by its first 32 bits in a database of IPv4 networks.
  const holds = (ip: string) => reader.metadata.ipVersion === 6 || ipaddr.IPv4.isValid(ip)
  return (ip: string): IpRecord => (holds(ip) ? reader.get(ip) : undefined)
}

interface Records {
  /** Of the databases that the settings name, which win. */
  own: Record<'city' | 'asn' | 'anonymous', IpRecord>
  listed: AddressRecords | undefined
  /** undefined = there are no lists. */
  reputation: Reputation | undefined
}

const reputationIn = (lists: readonly ReputationList[], ip: string): Reputation | undefined =>
  lists.length > 0 ? reputationOf(lists, ip) : undefined

function readNetwork(
  unknown: AddressNetwork,
  at: number,
  { own, listed, reputation }: Records,
): AddressNetwork {
  const { anonymous } = own
  const city = own.city === undefined ? listed?.city : own.city
  const asn = own.asn === undefined ? listed?.asn : own.asn
  const searched = {
    location_database: city,
    routing_database: asn,
    anonymity_database: anonymous,
    address_lists: listed?.anonymous,
    reputation_lists: reputation,
  }
  const sources = ipSources.filter((source) => searched[source] !== undefined)
  if (sources.length === 0) return unknown
  const known: AddressNetwork = {
    ...unknown,
    sources,
    status: knowsAnonymity(sources) ? 'ready' : 'skipped',
    location: city ? locationOf(city) : null,
    routing: routingOf(asn),
    anonymity: anonymityOf(
      [city, anonymous === undefined ? listed?.anonymous : anonymous],
      listed?.anonymous,
    ),
    ...(reputation && { reputation }),
    evaluated_at: at,
  }
  const risk_signals = sentences.flatMap(([flag]) => (known.anonymity[flag] ? [flag] : []))
  const operator = operatorOf(risk_signals, { city, listed: listed?.anonymous })
  const evidence = { ...known.evidence, ...operator, risk_signals }
  return { ...known, evidence, summary: summaryOf(known) }
}

const knowsAnonymity = (sources: IpSource[]): boolean =>
  sources.includes('anonymity_database') || sources.includes('address_lists')

const sentences: [Exclude<keyof Network['anonymity'], 'provider'>, string][] = [
  ['tor', 'This IP is a Tor exit node.'],
  ['vpn', 'This IP appears associated with VPN traffic.'],
  ['relay', 'This IP belongs to a privacy relay.'],
  ['residential_proxy', 'This IP appears associated with a residential proxy.'],
  ['proxy', 'This IP is a public proxy.'],
  ['callback_proxy', 'This IP appears associated with a callback proxy.'],
  ['hosting', 'This IP belongs to a hosting provider.'],
]

function summaryOf({ anonymity, reputation, location, routing }: Network): string | null {
  const first = sentences.find(([flag]) => anonymity[flag])
  if (first) return first[1]
  if (reputation.listed) return 'This IP is on a list of addresses with a bad reputation.'
  const place = [location?.city, location?.country ?? location?.country_code]
    .filter(Boolean)
    .join(', ')
  if (place) return `This IP is located in ${place}.`
  const operator = routing.organization ?? (routing.asn && `AS${routing.asn}`)
  return operator ? `This IP belongs to ${operator}.` : null
}

function unknownNetwork(address: string, read: ReadAddress | undefined): AddressNetwork {
  return {
    ip_address: read?.toString() ?? (address || null),
    ip_version: read?.kind() ?? null,
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

type ReadAddress = ReturnType<typeof parseAddress>

// Undefined for what is not an address. To read one takes longer than to search for it.
const readAddress = (ip: string): ReadAddress | undefined => orUndefined(() => parseAddress(ip))

/** The address as people write it: IPv4 where IPv6 only carries it (`::ffff:203.0.113.9`), else unchanged. */
export const plainAddress = (ip: string): string => readAddress(ip)?.toString() ?? ip

/** The network that an address is in: IPv4 /24, IPv6 /48 in hex; null for what is not an address. */
export function networkPrefix(ip: string): string | null {
  const address = readAddress(ip)
  if (!address) return null
  const bytes = address.toByteArray()
  if (address.kind() === 'ipv4') return bytes.slice(0, 3).join('.')
  return Buffer.from(bytes.slice(0, 6)).toString('hex')
}

/** The address of that network: `203.0.113.0`, `2001:db8:7::`. What is no address stays as it is. */
export function shortenedAddress(ip: string): string {
  const address = readAddress(ip)
  if (!address) return ip
  const prefixBytes = address.kind() === 'ipv4' ? 3 : 6
  const bytes = address.toByteArray().map((byte, i) => (i < prefixBytes ? byte : 0))
  return ipaddr.fromByteArray(bytes).toString()
}

/** Whether it is an address of this machine itself. */
export const isLoopback = (ip: string): boolean => readAddress(ip)?.range() === 'loopback'

// Whether it is an address, IPv4 or IPv6, that is in none of IANA's special-purpose ranges.
const isPublic = (read: ReadAddress | undefined): read is ReadAddress => read?.range() === 'unicast'

// The space that IANA assigns addresses from; every other IPv6 address is special or not in use. RFC 4291, section 2.4
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether a caller may name it as somebody's address on the internet: public, and written in full. IPv4 is four
 * decimal numbers (no `127.1`, `0x7f000001`, `010.0.0.1`), and IPv6 has no zone (no `%eth0`).
 */
export function isPublicAddressInFull(text: string): boolean {
  const read = readAddress(text)
  if (!isPublic(read)) return false
  return read instanceof ipaddr.IPv4
    ? isIPv4(text)
    : !text.includes('%') && read.match(globalUnicast)
}

import type { Network } from '../../schemas/events.ts'

/**
 * The record of a database for one address, in one of two formats: MaxMind's nested one (`country.iso_code`,
 * dev.maxmind.com/geoip/docs/databases) or the flat one of free databases (`country_code`,
 * github.com/sapics/ip-location-db). A member of an unexpected type counts as missing. null = the database does not
 * know the address, undefined = it was not searched.
 */
export type IpRecord = object | null | undefined

export function locationOf(record: object): NonNullable<Network['location']> {
  const code = textAt(record, 'country.iso_code') ?? textAt(record, 'country_code')
  return {
    city: textAt(record, 'city.names.en') ?? textAt(record, 'city'),
    region: textAt(record, 'subdivisions.0.names.en') ?? textAt(record, 'state1'),
    country: textAt(record, 'country.names.en') ?? countryName(code),
    country_code: code,
    latitude: numberAt(record, 'location.latitude') ?? numberAt(record, 'latitude'),
    longitude: numberAt(record, 'location.longitude') ?? numberAt(record, 'longitude'),
    timezone: textAt(record, 'location.time_zone') ?? textAt(record, 'timezone'),
    postal_code: textAt(record, 'postal.code') ?? textAt(record, 'postcode'),
    accuracy_radius_km: numberAt(record, 'location.accuracy_radius'),
  }
}

const countryNames = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' })
// Codes for unknown countries, which Intl has names for.
const unknownCountries = ['ZZ', 'XX']

// Cached, because Intl takes longer than the rest of a lookup. There are at most 676 codes.
const namesByCode = new Map<string, string | null>()

// Returns null for anything but a country code, because some databases contain other values.
function countryName(code: string | null): string | null {
  if (code === null || !/^[A-Z]{2}$/.test(code) || unknownCountries.includes(code)) return null
  const name = namesByCode.get(code) ?? countryNames.of(code) ?? null
  namesByCode.set(code, name)
  return name
}

export function routingOf(record: IpRecord): Network['routing'] {
  const asn = numberAt(record, 'autonomous_system_number')
  const organization = textAt(record, 'autonomous_system_organization')
  return { asn: asn === null ? null : String(asn), organization }
}

/**
 * Returns the flags that any of the records sets. Only the IP data file (`listed`) knows relays. Anonymous-IP databases
 * have flags at the root of a record, enterprise databases under `traits`, and plain city databases have none
 * (dev.maxmind.com/geoip/docs/databases/anonymous-ip).
 */
export function anonymityOf(records: IpRecord[], listed?: IpRecord): Network['anonymity'] {
  const sources = records
    .flatMap((record) => [record, memberAt(record, 'traits')])
    .filter((source) => source)
  const hasFlag = (name: string) => sources.some((source) => memberAt(source, name) === true)
  const providers = sources.map((source) => textAt(source, 'provider_name'))
  return {
    vpn: hasFlag('is_anonymous_vpn'),
    proxy: hasFlag('is_public_proxy') || hasFlag('is_anonymous_proxy'),
    tor: hasFlag('is_tor_exit_node'),
    relay: memberAt(listed, 'is_relay') === true,
    hosting: hasFlag('is_hosting_provider'),
    residential_proxy: hasFlag('is_residential_proxy'),
    callback_proxy: false,
    provider: providers.find((name) => name !== null) ?? null,
  }
}

/**
 * Returns the tags of the network's operator and its client types, as databases name them. The IP data file has two
 * kinds without a flag, `cdn` and `bot`. Enterprise databases have a `user_type`, such as `residential` or `cellular`.
 */
export function operatorEvidenceOf(
  flags: string[],
  { city, listed }: { city: IpRecord; listed: IpRecord },
): Pick<Network['evidence'], 'operator_tags' | 'client_types'> {
  const kinds = [...flags, textAt(listed, 'kind')].filter((kind) => kind !== null)
  const type = textAt(city, 'traits.user_type')
  return { operator_tags: [...new Set(kinds)], client_types: type === null ? [] : [type] }
}

// An address counts as shared from this many visitors a day. A household has fewer.
const minSharedClients = 10

/** Adds the number of visitors that the address had within a day, and the tag `shared_address` if it has many. */
export function withClientCount(
  evidence: Network['evidence'],
  client_count: number,
): Network['evidence'] {
  const tags = evidence.operator_tags.filter((tag) => tag !== 'shared_address')
  const operator_tags = client_count < minSharedClients ? tags : [...tags, 'shared_address']
  return { ...evidence, operator_tags, client_count }
}

/** Returns the text at a dotted path such as `subdivisions.0.names.en`; null if it is missing or empty. */
export function textAt(record: unknown, path: string): string | null {
  const value = memberAt(record, path)
  return typeof value === 'string' && value !== '' ? value : null
}

function numberAt(record: unknown, path: string): number | null {
  const value = memberAt(record, path)
  return typeof value === 'number' ? value : null
}

export function memberAt(record: unknown, path: string): unknown {
  const dot = path.indexOf('.')
  if (dot < 0) return ownMember(record, path)
  const inner = ownMember(record, path.slice(0, dot))
  return inner === undefined ? undefined : memberAt(inner, path.slice(dot + 1))
}

const ownMember = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined

import type { Network } from '../../schemas/events.ts'

/**
 * What a database says about one address. Two forms are read: MaxMind's nested one (`country.iso_code`,
 * dev.maxmind.com/geoip/docs/databases) and the flat one of free databases (`country_code`,
 * github.com/sapics/ip-location-db). A member of another type than expected counts as absent. null = the database
 * does not know the address, undefined = it was not searched.
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
// Intl names these codes, too, but the names say nothing.
const unknownCountries = ['ZZ', 'XX']

// Intl takes longer than all else of a look-up. There are 676 codes at most.
const namesByCode = new Map<string, string | null>()

// null for what is no code of a country, since some databases have such values.
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
 * A flag is true where any of the records says so; of relays only the file of addresses (`listed`) has a list. Flags are at
 * the root of a record in anonymous-IP databases, under `traits` in enterprise ones, nowhere in plain city ones.
 * dev.maxmind.com/geoip/docs/databases/anonymous-ip
 */
export function anonymityOf(records: IpRecord[], listed?: IpRecord): Network['anonymity'] {
  const places = records
    .flatMap((record) => [record, memberAt(record, 'traits')])
    .filter((place) => place)
  const says = (name: string) => places.some((place) => memberAt(place, name) === true)
  const providers = places.map((place) => textAt(place, 'provider_name'))
  return {
    vpn: says('is_anonymous_vpn'),
    proxy: says('is_public_proxy') || says('is_anonymous_proxy'),
    tor: says('is_tor_exit_node'),
    relay: memberAt(listed, 'is_relay') === true,
    hosting: says('is_hosting_provider'),
    residential_proxy: says('is_residential_proxy'),
    callback_proxy: false,
    provider: providers.find((name) => name !== null) ?? null,
  }
}

/**
 * Who operates the network, and what clients it has, as databases call them. The file of addresses has kinds that no flag
 * says, `cdn` and `bot`. An enterprise database says `user_type`, such as `residential` or `cellular`.
 */
export function operatorOf(
  flags: string[],
  { city, listed }: { city: IpRecord; listed: IpRecord },
): Pick<Network['evidence'], 'operator_tags' | 'client_types'> {
  const kinds = [...flags, textAt(listed, 'kind')].filter((kind) => kind !== null)
  const type = textAt(city, 'traits.user_type')
  return { operator_tags: [...new Set(kinds)], client_types: type === null ? [] : [type] }
}

// A household has fewer in a day.
const sharedBy = 10

/** The same of a network from whose address so many visitors came within a day. */
export function withClients(
  evidence: Network['evidence'],
  client_count: number,
): Network['evidence'] {
  const own = evidence.operator_tags.filter((tag) => tag !== 'shared_address')
  const operator_tags = client_count < sharedBy ? own : [...own, 'shared_address']
  return { ...evidence, operator_tags, client_count }
}

/** null where there is none, or an empty one. `path` has names and places by dots: `subdivisions.0.names.en`. */
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

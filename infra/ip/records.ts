import type { Network } from '../../schemas/events.ts'

/**
 * What a database says about one address. Two forms are read: MaxMind's nested one (`country.iso_code`,
 * dev.maxmind.com/geoip/docs/databases) and the flat one of free databases (`country_code`,
 * github.com/sapics/ip-location-db). A member of another type than expected counts as absent.
 */
export type IpRecord = object | null | undefined

/** Of a city or country record. */
export function locationOf(record: object): NonNullable<Network['location']> {
  return {
    city: text(record, 'city.names.en') ?? text(record, 'city'),
    region: text(record, 'subdivisions.0.names.en') ?? text(record, 'state1'),
    country: text(record, 'country.names.en'),
    country_code: text(record, 'country.iso_code') ?? text(record, 'country_code'),
    latitude: number(record, 'location.latitude') ?? number(record, 'latitude'),
    longitude: number(record, 'location.longitude') ?? number(record, 'longitude'),
    timezone: text(record, 'location.time_zone') ?? text(record, 'timezone'),
    postal_code: text(record, 'postal.code') ?? text(record, 'postcode'),
    accuracy_radius_km: number(record, 'location.accuracy_radius'),
  }
}

/** Of an ASN record; both forms have the same names. */
export function routingOf(record: IpRecord): Network['routing'] {
  const asn = number(record, 'autonomous_system_number')
  const organization = text(record, 'autonomous_system_organization')
  return { asn: asn === null ? null : String(asn), organization }
}

/**
 * Of any records: what one of them says is so. Flags are at the root of a record in anonymous-IP databases, under
 * `traits` in enterprise ones, nowhere in plain city ones. dev.maxmind.com/geoip/docs/databases/anonymous-ip
 */
export function anonymityOf(records: IpRecord[]): Network['anonymity'] {
  const places = records.flatMap((record) => [record, member(record, 'traits')])
  const says = (name: string) => places.some((place) => member(place, name) === true)
  const providers = places.map((place) => text(place, 'provider_name'))
  return {
    vpn: says('is_anonymous_vpn'),
    proxy: says('is_public_proxy') || says('is_anonymous_proxy'),
    tor: says('is_tor_exit_node'),
    relay: false,
    hosting: says('is_hosting_provider'),
    residential_proxy: says('is_residential_proxy'),
    callback_proxy: false,
    provider: providers.find((name) => name !== null) ?? null,
  }
}

function text(record: unknown, path: string): string | null {
  const value = member(record, path)
  return typeof value === 'string' && value !== '' ? value : null
}

function number(record: unknown, path: string): number | null {
  const value = member(record, path)
  return typeof value === 'number' ? value : null
}

/** `path` has member names and array positions between dots. */
function member(record: unknown, path: string): unknown {
  let value = record
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = Reflect.get(value, name)
  }
  return value
}

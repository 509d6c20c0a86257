/** `DE` of a record about a country, MaxMind's or flat; empty where it has none. */
export function countryOf(record: object): string {
  const code = memberOf(record, 'country_code') ?? memberOf(memberOf(record, 'country'), 'iso_code')
  return typeof code === 'string' ? countryCode(code) : ''
}

/** Databases write `ZZ` or nothing for what they do not know. */
export const countryCode = (code: string): string => (/^(?!ZZ)[A-Z]{2}$/.test(code) ? code : '')

/** `64500 Example Networks` of a line's columns: the number of the network and its holder. */
export function networkOf([asn = '', holder = '']: string[]): string {
  return /^[1-9]\d*$/.test(asn) ? `${asn} ${holder}` : ''
}

/** The same of a record of an MMDB file. */
export function networkOfRecord(record: object): string {
  const holder = memberOf(record, 'autonomous_system_organization')
  return networkOf([
    String(memberOf(record, 'autonomous_system_number')),
    typeof holder === 'string' ? holder : '',
  ])
}

const memberOf = (record: unknown, name: string): unknown =>
  typeof record === 'object' && record !== null ? Reflect.get(record, name) : undefined

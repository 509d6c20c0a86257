import { memberAt, textAt } from '../records.ts'

/** `DE` of a record about a country, MaxMind's or flat; empty where it has none. */
export function countryOf(record: object): string {
  return countryCode(textAt(record, 'country_code') ?? textAt(record, 'country.iso_code') ?? '')
}

/** Databases write `ZZ` or nothing for what they do not know. */
export const countryCode = (code: string): string => (/^(?!ZZ)[A-Z]{2}$/.test(code) ? code : '')

/** `64500 Example Networks` of a line's columns: the number of the network and its holder. */
export function networkOf([asn = '', holder = '']: string[]): string {
  return /^[1-9]\d*$/.test(asn) ? `${asn} ${holder}` : ''
}

/** The same of a record of an MMDB file. */
export function networkOfRecord(record: object): string {
  const asn = String(memberAt(record, 'autonomous_system_number'))
  return networkOf([asn, textAt(record, 'autonomous_system_organization') ?? ''])
}

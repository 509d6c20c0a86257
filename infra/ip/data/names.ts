import { memberAt, textAt } from '../records.ts'

/** Returns the country of a record, MaxMind's or flat, as `DE`; empty if it has none. */
export function countryOf(record: object): string {
  return countryCode(textAt(record, 'country_code') ?? textAt(record, 'country.iso_code') ?? '')
}

/** Returns a valid country code, or an empty text: databases write `ZZ` or nothing for unknown countries. */
export const countryCode = (code: string): string => (/^(?!ZZ)[A-Z]{2}$/.test(code) ? code : '')

/** Returns the network of a CSV line, its number and holder, as `64500 Example Networks`; empty if it has none. */
export function networkOf([asn = '', holder = '']: string[]): string {
  return /^[1-9]\d*$/.test(asn) ? `${asn} ${holder}` : ''
}

/** Returns the same for a record of an MMDB file. */
export function networkOfRecord(record: object): string {
  const asn = String(memberAt(record, 'autonomous_system_number'))
  return networkOf([asn, textAt(record, 'autonomous_system_organization') ?? ''])
}

import { memberAt, textAt } from '../records.ts'

/** Returns the country code of a MaxMind or flat record; empty if it has none. */
export function countryOf(record: object): string {
  return countryCode(textAt(record, 'country_code') ?? textAt(record, 'country.iso_code') ?? '')
}

/** Returns a valid country code, or an empty text: databases write `ZZ` or nothing for unknown countries. */
export const countryCode = (code: string): string => (/^(?!ZZ)[A-Z]{2}$/.test(code) ? code : '')

/** Returns the number and holder of a network in CSV, as `64500 Example Networks`; empty if there is no number. */
export function networkOf([asn = '', holder = '']: string[]): string {
  return /^[1-9]\d*$/.test(asn) ? `${asn} ${holder}` : ''
}

/** Like `networkOf`, for a record of an MMDB file. */
export function networkOfRecord(record: object): string {
  const asn = String(memberAt(record, 'autonomous_system_number'))
  return networkOf([asn, textAt(record, 'autonomous_system_organization') ?? ''])
}

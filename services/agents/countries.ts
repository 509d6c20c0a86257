import codes from 'i18n-iso-countries/codes.json' with { type: 'json' }

/** In general use for Kosovo and in the list, but not assigned by ISO 3166-1. */
const kosovo = 'XK'

const listed = new Set(codes.map(([alpha2]) => alpha2))

/** Whether ISO 3166-1 assigns this alpha-2 code to a country, in upper case. */
export function isAssignedCountryCode(code: string): boolean {
  return code !== kosovo && listed.has(code)
}

/** Whether it names a country when a database says it; `EU` and `XX`, which some say, do not. */
export function isObservedCountryCode(code: string): boolean {
  return listed.has(code)
}

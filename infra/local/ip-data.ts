import { createRequire } from 'node:module'

const { resolve } = createRequire(import.meta.url)

/** Where the package has its file; undefined when the package is not installed. */
function installed(file: string): string | undefined {
  try {
    return resolve(file)
  } catch {
    return undefined
  }
}

/**
 * Databases of addresses for development, where no setting names any: an optional package (see NOTICE) says the
 * countries. There is none for networks (ASN), so what needs those answers 503 until `ASN_MMDB` is set.
 */
export function developmentDatabases(): { cityPath?: string } {
  const cityPath = installed('@ip-location-db/geo-whois-asn-country-mmdb/geo-whois-asn-country.mmdb')
  return cityPath ? { cityPath } : {}
}

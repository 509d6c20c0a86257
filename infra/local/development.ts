import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import type { Random } from '../ids.ts'

const { resolve } = createRequire(import.meta.url)

function installed(file: string): string | undefined {
  try {
    return resolve(file)
  } catch {
    return undefined
  }
}

/**
 * Databases of addresses where no setting names any. An optional package, whose author has withdrawn its data (see
 * NOTICE), says the countries. There is none for networks and anonymous addresses, so that IP rotation answers 503.
 */
export function developmentDatabases(): { cityPath?: string } {
  const cityPath = installed('@ip-location-db/geo-whois-asn-country-mmdb/geo-whois-asn-country.mmdb')
  return cityPath ? { cityPath } : {}
}

/**
 * The master keys of a development installation, made once and kept in DATA_DIR. Without them no key and no
 * sealed value of the installation can be used. Production takes them from its own secret store.
 */
export function developmentMasterKeys({ dataDir, random }: { dataDir: string; random: Random }): string {
  const file = path.join(dataDir, 'master-keys')
  if (existsSync(file)) return readFileSync(file, 'utf8').trim()
  mkdirSync(dataDir, { recursive: true })
  const keys = random(32).toString('base64')
  writeFileSync(file, `${keys}\n`, { mode: 0o600 })
  chmodSync(file, 0o600)
  return keys
}

import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import type { Random } from '../ids.ts'
import { type SimulationKey, simulationKeyBytes } from '../wire/collect/simulation.ts'

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
 * The master keys of a development installation, made once and stored in DATA_DIR. Without them no key and no
 * sealed value of the installation can be used. Production takes them from its own secret store.
 */
export function developmentMasterKeys({ dataDir, random }: { dataDir: string; random: Random }): string {
  const file = path.join(dataDir, 'master-keys')
  if (existsSync(file)) return readFileSync(file, 'utf8').trim()
  const keys = random(32).toString('base64')
  writeSecret(file, keys)
  return keys
}

const simulationKeyFile = (dataDir: string) => path.join(dataDir, 'simulation-key')

/** The key by which scripts prove themselves to the `tidegate dev` that keeps its files there; undefined without one. */
export function readSimulationKey(dataDir: string): SimulationKey | undefined {
  const file = simulationKeyFile(dataDir)
  const key = existsSync(file) ? Buffer.from(readFileSync(file, 'utf8'), 'base64') : undefined
  return key?.length === simulationKeyBytes ? key : undefined
}

/** The same, made once. Only `tidegate dev` may call this, because its server takes whoever has the key for human. */
export function developmentSimulationKey({
  dataDir,
  random,
}: {
  dataDir: string
  random: Random
}): SimulationKey {
  const known = readSimulationKey(dataDir)
  if (known) return known
  const key = random(simulationKeyBytes)
  writeSecret(simulationKeyFile(dataDir), key.toString('base64'))
  return key
}

function writeSecret(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, `${text}\n`, { mode: 0o600 })
  chmodSync(file, 0o600)
}

import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Random } from '../ids.ts'
import { type SimulationKey, simulationKeyBytes } from '../wire/collect/simulation.ts'

/**
 * The master keys of a development installation, made once and stored in DATA_DIR. Without them no key and no
 * sealed value of the installation can be used. Production takes them from its own secret store.
 */
export function developmentMasterKeys({
  dataDir,
  random,
}: {
  dataDir: string
  random: Random
}): string {
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

import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Random } from '../ids.ts'
import { type SimulationKey, simulationKeyBytes } from '../wire/collect/simulation.ts'

/**
 * Returns the master keys of a development installation, which it generates at the first call and stores in DATA_DIR.
 * If they are lost, no API key or sealed value of the installation works. In production they come from a secret store.
 */
export function loadOrCreateMasterKeys({
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

/** Returns the key that authenticates simulation scripts to `tidegate dev`; undefined if DATA_DIR has none. */
export function readSimulationKey(dataDir: string): SimulationKey | undefined {
  const file = simulationKeyFile(dataDir)
  const key = existsSync(file) ? Buffer.from(readFileSync(file, 'utf8'), 'base64') : undefined
  return key?.length === simulationKeyBytes ? key : undefined
}

/** Returns the simulation key, generated at the first call. The server scores everyone who has it as human. */
export function loadOrCreateSimulationKey({
  dataDir,
  random,
}: {
  dataDir: string
  random: Random
}): SimulationKey {
  const stored = readSimulationKey(dataDir)
  if (stored) return stored
  const key = random(simulationKeyBytes)
  writeSecret(simulationKeyFile(dataDir), key.toString('base64'))
  return key
}

function writeSecret(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, `${text}\n`, { mode: 0o600 })
  chmodSync(file, 0o600)
}

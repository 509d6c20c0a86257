import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Random } from '../ids.ts'

/**
 * The master keys of a development installation: made once, kept in DATA_DIR. Losing the file makes every key
 * and sealed value of that installation unusable, which is why production takes them from its own secret store.
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

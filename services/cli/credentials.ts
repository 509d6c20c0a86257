import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { commandLine } from './command-line.ts'

/** Returns DATA_DIR, the data directory of a running `tidegate dev`. */
export const dataDirectory = (): string => process.env.DATA_DIR || '.tidegate'

export async function readCredentials(): Promise<DevelopmentCredentials | undefined> {
  const file = path.join(dataDirectory(), 'credentials.json')
  const text = await readFile(file, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : JSON.parse(text)
}

export const noCredentialsMessage = (): string =>
  `DATA_DIR (${path.resolve(dataDirectory())}) has no credentials.json: start ${commandLine('dev')} first, or set DATA_DIR to the data directory of a running one.`

/** Returns the value, which the caller takes from the flag or from credentials.json. Throws if it is missing. */
export function requireValue(value: string | undefined, flag: string): string {
  if (value) return value
  throw new Error(`${flag} is missing, and ${noCredentialsMessage()}`)
}

export interface EnvironmentKeys {
  /** Key for browsers. */
  publishable_key: string
  secret_key: string
  ios_publishable_key: string
  android_publishable_key: string
}

export interface DevelopmentCredentials {
  base_url: string
  organization_id: string
  live: EnvironmentKeys
  test: EnvironmentKeys
}

/** Writes a file in the data directory that only its owner can read. */
export async function writePrivate({
  dataDir,
  name,
  text,
}: {
  dataDir: string
  name: string
  text: string
}) {
  await mkdir(dataDir, { recursive: true })
  const file = path.join(dataDir, name)
  await writeFile(file, text, { mode: 0o600 })
  await chmod(file, 0o600)
}

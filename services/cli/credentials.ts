import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { typed } from './typed.ts'

/** Where a running `tidegate dev` keeps its files: DATA_DIR. */
export const dataDirectory = (): string => process.env.DATA_DIR || '.tidegate'

export async function readCredentials(): Promise<DevelopmentCredentials | undefined> {
  const file = path.join(dataDirectory(), 'credentials.json')
  const text = await readFile(file, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : JSON.parse(text)
}

export const noCredentials = (): string =>
  `DATA_DIR (${path.resolve(dataDirectory())}) has no credentials.json: start ${typed('dev')} first, or set DATA_DIR to where a running one keeps its files.`

/** The value, which is a flag's or of credentials.json. Throws where neither has it. */
export function required(value: string | undefined, flag: string): string {
  if (value) return value
  throw new Error(`${flag} is not given, and ${noCredentials()}`)
}

export interface EnvironmentKeys {
  /** For browsers. */
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

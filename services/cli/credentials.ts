import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { Credentials } from './development.ts'

/** Where a running `tidegate dev` keeps its files: DATA_DIR. */
export const dataDirectory = (): string => process.env.DATA_DIR || '.tidegate'

/** What `tidegate dev` wrote to credentials.json; undefined when there is none. */
export async function readCredentials(): Promise<Credentials | undefined> {
  const file = path.join(dataDirectory(), 'credentials.json')
  const text = await readFile(file, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : JSON.parse(text)
}

/** The value of an option that has its default in credentials.json; throws when there is neither. */
export function given(value: string | undefined, flag: string): string {
  if (value) return value
  throw new Error(
    `${flag} is not given and there is no credentials.json in DATA_DIR (is tidegate dev running?)`,
  )
}

import { randomBytes } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll } from 'vitest'

/** Creates a folder for the tests of the calling scope. Deletes it afterwards. */
export function temporaryFolder(name: string): string {
  const folder = path.join(tmpdir(), `tidegate-${name}-${randomBytes(6).toString('hex')}`)
  beforeAll(() => mkdir(folder))
  afterAll(
    () => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 500 }),
    60_000,
  )
  return folder
}

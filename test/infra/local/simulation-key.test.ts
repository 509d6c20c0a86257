import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadOrCreateSimulationKey, readSimulationKey } from '../../../infra/local/development.ts'

let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'tidegate-key-'))
})
afterEach(() => rm(dataDir, { recursive: true, force: true }))

const loadOrCreate = () => loadOrCreateSimulationKey({ dataDir, random: randomBytes })
const file = () => path.join(dataDir, 'simulation-key')

test('reading a missing key returns undefined and creates none', () => {
  expect(readSimulationKey(dataDir)).toBeUndefined()
  expect(readSimulationKey(path.join(dataDir, 'nowhere'))).toBeUndefined()
})

test('a key is created once, readable for its owner only', async () => {
  const key = loadOrCreate()
  expect(key).toHaveLength(32)
  expect([loadOrCreate(), readSimulationKey(dataDir)]).toEqual([key, key])
  expect((await stat(file())).mode & 0o777).toBe(0o600)
})

test.each(['', 'AAAA'])('an invalid key is replaced: %j', async (text) => {
  await writeFile(file(), text)
  expect(readSimulationKey(dataDir)).toBeUndefined()
  expect(loadOrCreate()).toHaveLength(32)
  expect((await stat(file())).mode & 0o777).toBe(0o600)
})

import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { developmentSimulationKey, readSimulationKey } from '../../../infra/local/development.ts'

let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'tidegate-key-'))
})
afterEach(() => rm(dataDir, { recursive: true, force: true }))

const made = () => developmentSimulationKey({ dataDir, random: randomBytes })
const file = () => path.join(dataDir, 'simulation-key')

test('given no file, when it is read, then there is no key, and nobody made one', () => {
  expect(readSimulationKey(dataDir)).toBeUndefined()
  expect(readSimulationKey(path.join(dataDir, 'nowhere'))).toBeUndefined()
})

test('given a start of tidegate dev, when it starts again, then the key is the same, for its owner only', async () => {
  const key = made()
  expect(key).toHaveLength(32)
  expect([made(), readSimulationKey(dataDir)]).toEqual([key, key])
  expect((await stat(file())).mode & 0o777).toBe(0o600)
})

test.each(['', 'AAAA'])(
  'given %j in the file, when it is read, then it is no key, and another is made',
  async (text) => {
    await writeFile(file(), text)
    expect(readSimulationKey(dataDir)).toBeUndefined()
    expect(made()).toHaveLength(32)
    expect((await stat(file())).mode & 0o777).toBe(0o600)
  },
)

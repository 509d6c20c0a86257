import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lockFile } from './lock.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tidegate-lock-'))
})
afterAll(() => rm(folder, { recursive: true }))

const fileAt = (name: string) => path.join(folder, name)

test('who waits gets it when it is released', async () => {
  const file = fileAt('waits')
  const order: string[] = []
  const first = await lockFile(file)
  expect(await lockFile(file, { wait: false })).toBeUndefined()
  const second = lockFile(file).then((lock) => {
    order.push('second')
    return lock
  })
  order.push('first')
  await first?.release()
  await (await second)?.release()
  expect(order).toEqual(['first', 'second'])
})

test('many share it, and meanwhile nobody has it alone', async () => {
  const file = fileAt('shared')
  const shared = await Promise.all([
    lockFile(file, { shared: true }),
    lockFile(file, { shared: true }),
  ])
  expect(await lockFile(file, { wait: false })).toBeUndefined()
  await Promise.all(shared.map((lock) => lock?.release()))
  const alone = await lockFile(file, { wait: false })
  expect(alone).toBeDefined()
  await alone?.release()
})

test('it goes with a process that is killed', async () => {
  const file = fileAt('killed')
  const script = `const { lockFile } = await import('${path.join(import.meta.dirname, 'lock.ts')}')
    await lockFile('${file}'); console.log('held'); setInterval(() => {}, 1000)`
  const other = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(other.stdout, 'data')
  expect(await lockFile(file, { wait: false })).toBeUndefined()
  other.kill('SIGKILL')
  await (await lockFile(file))?.release()
})

test('a file that cannot be locked is an error', async () => {
  await expect(lockFile(fileAt('no/such/folder'))).rejects.toThrow(/could not be locked/)
})

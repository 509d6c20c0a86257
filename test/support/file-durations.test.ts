import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { FileDuration } from './file-durations.ts'
import { root } from './test-projects.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tidegate-durations-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const suite = `import { beforeAll, describe, it } from 'vitest'
describe('a server', () => {
  beforeAll(() => { throw new Error('the broker did not start') })
  it('answers', () => {})
})`

test('a hook that throws is reported with its suite', async () => {
  await writeFile(path.join(folder, 'hook.test.ts'), suite)
  const report = path.join(folder, 'durations.json')
  const reporter = `--reporter=${path.join(root, 'test/support/file-durations.ts')}`
  const args = [
    path.join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--root',
    folder,
    reporter,
  ]
  const env = { ...process.env, TEST_DURATIONS: report }
  const code = await new Promise((resolve) =>
    execFile(process.execPath, args, { cwd: folder, env }, (error) => resolve(error?.code)),
  )
  expect(code).toBe(1)
  const [file]: FileDuration[] = JSON.parse(await readFile(report, 'utf8'))
  expect(file?.hookErrors).toEqual([
    expect.stringMatching(/^a server: Error: the broker did not start\n/),
  ])
}, 60_000)

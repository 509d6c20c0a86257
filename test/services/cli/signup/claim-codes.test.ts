import { access, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createClaimCodes } from '../../../../services/cli/signup/claim-codes.ts'
import { eventually } from '../../../support/eventually.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tidegate-codes-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

test('a typed line is returned once', async () => {
  const input = new PassThrough()
  const codes = createClaimCodes({ input })
  await codes.open()
  expect(await codes.next()).toBeUndefined()
  input.write('\n 483 201 \n111')
  await eventually(async () => expect(await codes.next()).toBe('483 201'))
  expect(await codes.next()).toBeUndefined()
  await codes.close()
})

test('the default file is in a private folder, which is deleted at the end', async () => {
  const codes = createClaimCodes({ input: new PassThrough().end() })
  const file = await codes.open()
  expect((await stat(path.dirname(file))).mode & 0o777).toBe(0o700)
  await writeFile(file, '483201\n')
  expect(await codes.next()).toBe('483201')
  expect(await codes.next()).toBeUndefined()
  await writeFile(file, '483202')
  expect(await codes.next()).toBe('483202')
  await codes.close()
  await expect(access(path.dirname(file))).rejects.toThrow()
})

test('earlier content of a named file is ignored', async () => {
  const file = path.join(folder, 'code')
  await writeFile(file, '111111')
  const codes = createClaimCodes({ input: new PassThrough(), file })
  expect(await codes.open()).toBe(file)
  expect(await codes.next()).toBeUndefined()
  await writeFile(file, 'x'.repeat(100))
  expect(await codes.next()).toBeUndefined()
  await writeFile(file, '222222')
  expect(await codes.next()).toBe('222222')
  await codes.close()
  await access(file)
})

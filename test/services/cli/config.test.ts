import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { cli } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const folder = temporaryFolder('config')
beforeAll(() => writeFile(path.join(folder, 'keys'), randomBytes(32).toString('base64')))

const database = { DATABASE_URL: 'postgres://nowhere:1/none' }
const check = (settings: Record<string, string>, ...args: string[]) =>
  cli(['config', 'check', ...args], { DATABASE_URL: '', TIDEGATE_MASTER_KEYS: '', ...settings })

it('config check accepts valid settings without connecting, and prints warnings', async () => {
  const keys = { TIDEGATE_MASTER_KEYS_FILE: path.join(folder, 'keys') }
  const result = await check({ ...keys, ...database, HOST: '0.0.0.0' })
  expect(result).toMatchObject({ code: 0, stderr: '' })
  expect(result.stdout).toMatch(/warning: PUBLIC_URL is not set[\s\S]*The settings are valid/)
})

it('config check runs TIDEGATE_MASTER_KEYS_COMMAND, and never prints its output', async () => {
  const checkWith = (program: string) => {
    const command = { TIDEGATE_MASTER_KEYS_COMMAND: `${program} ${folder}/keys` }
    return check({ ...database, ...command }, '--roles', 'api')
  }
  expect(await checkWith('/bin/cat')).toMatchObject({ code: 0, stderr: '' })
  expect(await checkWith('/bin/ls')).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /TIDEGATE_MASTER_KEYS_COMMAND did not print(?!.*tidegate-config-)/s,
    ),
  })
})

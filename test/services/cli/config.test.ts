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

it('tidegate config check says that a server could start, without a database that answers, and what people will miss', async () => {
  const keys = { TIDEGATE_MASTER_KEYS_FILE: path.join(folder, 'keys') }
  const answer = await check({ ...keys, ...database, HOST: '0.0.0.0' })
  expect(answer).toMatchObject({ code: 0, stderr: '' })
  expect(answer.stdout).toMatch(/warning: PUBLIC_URL is not set[\s\S]*The settings are valid/)
})

it('tidegate config check asks the command for the keys, and tells nothing that it prints', async () => {
  const asked = (program: string) => {
    const command = { TIDEGATE_MASTER_KEYS_COMMAND: `${program} ${folder}/keys` }
    return check({ ...database, ...command }, '--roles', 'api')
  }
  expect(await asked('/bin/cat')).toMatchObject({ code: 0, stderr: '' })
  expect(await asked('/bin/ls')).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /TIDEGATE_MASTER_KEYS_COMMAND did not print(?!.*tidegate-config-)/s,
    ),
  })
})

import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { readConfig } from '../../../infra/config.ts'
import { readMasterKeys } from '../../../infra/crypto/master-keys.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const keys = `${'A'.repeat(43)}=, ${'b+/9'.repeat(11)}`

const folder = temporaryFolder('keys')

describe('the command for master keys', () => {
  async function printed(
    script: string,
    args = '',
    timeoutMs?: number,
  ): Promise<string | undefined> {
    const file = path.join(folder, 'script')
    await writeFile(file, script)
    const command = `/bin/sh ${file} ${args}`
    return readMasterKeys(
      readConfig({ TIDEGATE_MASTER_KEYS_COMMAND: command }),
      timeoutMs ? { timeoutMs } : {},
    )
  }

  it('is run with literal arguments, and prints the keys', async () => {
    expect(
      await printed(`[ "$#" = 2 ] && [ "$1" = '$HOME' ] && echo '${keys}'`, ' $HOME  b '),
    ).toBe(keys)
  })

  it.each([
    ['fails', `echo ${keys}; echo secret >&2; exit 3`, 'exited with 3'],
    ['is killed', `echo ${keys}; kill -9 $$`, 'exited with SIGKILL'],
    ['prints nothing', 'true', 'did not print comma-separated base64'],
    [
      'prints a message',
      'echo "Key and value of the secret: none, as the password was wrong"',
      'did not print',
    ],
    ['prints endlessly', 'while :; do echo secret; done', 'printed more than one megabyte'],
    ['asks for input', `read answer && echo '${keys}'`, 'exited with 1'],
  ])('causes an error without its output if it %s', async (_, script, message) => {
    const error = await printed(script).catch((cause: unknown) => cause)
    expect(String(error)).toContain(`TIDEGATE_MASTER_KEYS_COMMAND ${message}`)
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toMatch(
      /AAAA|secret\b|password/,
    )
  })

  it('causes an error if it does not end, even with child processes', async () => {
    await expect(printed('sleep 60 & sleep 60', '', 100)).rejects.toThrow(
      'took longer than 0.1 seconds',
    )
  })

  it('causes an error if it does not exist', async () => {
    const missing = readConfig({ TIDEGATE_MASTER_KEYS_COMMAND: path.join(folder, 'none') })
    await expect(readMasterKeys(missing)).rejects.toThrow('failed to start (ENOENT)')
  })
})

it('only one setting may contain master keys', async () => {
  const command = { TIDEGATE_MASTER_KEYS_COMMAND: 'print-keys' }
  const both =
    'TIDEGATE_MASTER_KEYS_COMMAND: TIDEGATE_MASTER_KEYS or TIDEGATE_MASTER_KEYS_FILE is also set'
  expect(() => readConfig({ ...command, TIDEGATE_MASTER_KEYS: keys })).toThrow(both)
  expect(() => readConfig({ ...command, TIDEGATE_MASTER_KEYS_FILE: import.meta.filename })).toThrow(
    both,
  )
  expect(await readMasterKeys(readConfig({ TIDEGATE_MASTER_KEYS: keys }))).toBe(keys)
})

it.each([' ', `sh -c 'print keys'`])('%j is not a valid command for master keys', (command) => {
  expect(() => readConfig({ TIDEGATE_MASTER_KEYS_COMMAND: command })).toThrow(
    'TIDEGATE_MASTER_KEYS_COMMAND must be a program and its arguments, without quotes',
  )
})

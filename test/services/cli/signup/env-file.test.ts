import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseEnv, promisify } from 'node:util'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  envText,
  quoteEnvValue,
  requireNewFile,
  writeNewFile,
} from '../../../../services/cli/signup/env-file.ts'

const run = promisify(execFile)
const seed = Date.now()
console.log(`seed ${seed}`)

const textOf = (values: Record<string, string>) =>
  envText(new Map(Object.entries(values)), ['Signed up\nB=not a variable'])

const hard = [
  "'",
  '"',
  '`',
  '$',
  '\\',
  '\n',
  '\\n',
  '\r',
  ' ',
  '#',
  '=',
  'a',
  '$(id)',
  '\t',
  '!',
  '~',
]

/** Random texts, half of them made of characters that are hard to quote. */
const value = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.array(fc.constantFrom(...hard)).map((parts) => parts.join('')),
)
const isQuotable = (text: string) => quoteEnvValue(text) !== undefined

/** Parses by dotenv's documented rules: three kinds of quotes, `#` ends unquoted values, `\n` is expanded in `"` only. */
function dotenv(text: string): Record<string, string> {
  const values: Record<string, string> = {}
  const assignment =
    /^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=[ \t]*('(?:\\'|[^'])*'|"(?:\\"|[^"])*"|`(?:\\`|[^`])*`|[^#\n]*)[ \t]*(?:#.*)?$/gm
  for (const [, name = '', written = ''] of text.matchAll(assignment)) {
    const inner = /^(['"`])([\s\S]*)\1$/.exec(written.trim())
    const plain = inner?.[2] ?? written.trim()
    values[name] =
      inner?.[1] === '"' ? plain.replaceAll('\\n', '\n').replaceAll('\\r', '\r') : plain
  }
  return values
}

describe('a written value', () => {
  test('is read back by parseEnv and dotenv, next to any other values', () => {
    const between = fc.array(value.filter(isQuotable), { minLength: 1, maxLength: 5 })
    const property = fc.property(between, (values) => {
      const names = Object.fromEntries(values.map((text, i) => [`V${i}`, text]))
      const text = textOf(names)
      expect(parseEnv(text)).toEqual(names)
      expect(dotenv(text)).toEqual(names)
    })
    fc.assert(property, { seed, numRuns: 2000 })
  })

  test('is read back by a shell, which executes none of it', async () => {
    const values = fc.sample(value.filter(isQuotable), { seed, numRuns: 300 })
    const names = Object.fromEntries(values.map((text, i) => [`V${i}`, text]))
    const text = textOf(names)
    const script = `set -a; eval "$1"; exec env -0`
    const { stdout } = await run('sh', ['-c', script, 'sh', text], {
      env: { PATH: process.env.PATH },
    })
    const read = stdout
      .split('\0')
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])
    expect(Object.fromEntries(read)).toMatchObject(names)
  })

  test('is quoted unless some reader would misread it', () => {
    const property = fc.property(value, (text) => {
      expect(quoteEnvValue(text) === undefined).toBe(
        /['\r\n\0]|\\$/.test(text) || !text.isWellFormed(),
      )
    })
    fc.assert(property, { seed, numRuns: 2000 })
  })
})

describe('a new file', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-env-'))
  })
  afterEach(() => rm(folder, { recursive: true }))
  const at = (name: string) => path.join(folder, name)

  test('is readable only by its owner, and replaces no other file', async () => {
    await writeFile(at('.env.acme'), 'not ours')
    await symlink('target', at('.env.acme.2'))
    const write = (text: string) => writeNewFile(at('.env.acme'), text)
    await writeFile(at('target'), 'not ours either')
    expect(await write('A=1\n')).toBe(at('.env.acme.3'))
    expect((await stat(at('.env.acme.3'))).mode & 0o777).toBe(0o600)
    expect(await readFile(at('.env.acme.3'), 'utf8')).toBe('A=1\n')
    expect(await write('A=2\n')).toBe(at('.env.acme.4'))
    expect(await readFile(at('.env.acme'), 'utf8')).toBe('not ours')
    expect(await readFile(at('target'), 'utf8')).toBe('not ours either')
  })

  test('is rejected if the path exists, even as a dangling link', async () => {
    await writeFile(at('there'), '')
    await symlink('nowhere/.env', at('dangling'))
    for (const name of ['there', 'dangling', '.'])
      await expect(requireNewFile(at(name))).rejects.toThrow('it already exists')
  })

  test('is rejected if it could not be written, and the check leaves no files', async () => {
    for (const name of ['none/.env', 'a'.repeat(256)])
      await expect(requireNewFile(at(name))).rejects.toThrow(/ENOENT|ENAMETOOLONG/)
    await requireNewFile(at('.env.acme'))
    expect(await readdir(folder)).toEqual([])
  })
})

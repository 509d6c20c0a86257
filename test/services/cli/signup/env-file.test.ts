import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseEnv, promisify } from 'node:util'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  additionTo,
  changeText,
  quoted,
  writablePlace,
  writeExtraFile,
} from '../../../../services/cli/signup/env-file.ts'

const run = promisify(execFile)
const seed = Date.now()
console.log(`seed ${seed}`)

const comment = 'Signed up'
/** The file's text afterwards, and what became of the values. */
function merge(before: string, values: Record<string, string>, overwrite = false) {
  const given = new Map(Object.entries(values))
  const { lines, ...rest } = additionTo(before, given, { comments: [comment], overwrites: () => overwrite })
  return { text: before + lines, ...rest }
}

/** Hard ones more often than chance has them. */
const value = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc
    .array(
      fc.constantFrom(
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
      ),
    )
    .map((parts) => parts.join('')),
)
const holds = (text: string) => quoted(text) !== undefined

/** The documented rules of dotenv: quotes of three kinds, `#` ends what has none, `\n` is expanded between `"` only. */
function dotenv(text: string): Record<string, string> {
  const found: Record<string, string> = {}
  const assignment =
    /^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=[ \t]*('(?:\\'|[^'])*'|"(?:\\"|[^"])*"|`(?:\\`|[^`])*`|[^#\n]*)[ \t]*(?:#.*)?$/gm
  for (const [, name = '', written = ''] of text.matchAll(assignment)) {
    const inner = /^(['"`])([\s\S]*)\1$/.exec(written.trim())
    const plain = inner?.[2] ?? written.trim()
    found[name] = inner?.[1] === '"' ? plain.replaceAll('\\n', '\n').replaceAll('\\r', '\r') : plain
  }
  return found
}

describe('a value reads the same after it was written', () => {
  test('by parseEnv and by the rules of dotenv, whatever stands before and after it', () => {
    const between = fc.array(value.filter(holds), { minLength: 1, maxLength: 5 })
    const property = fc.property(between, (values) => {
      const names = Object.fromEntries(values.map((text, i) => [`V${i}`, text]))
      const { text, present, conflicts } = merge('', names)
      expect(parseEnv(text)).toEqual(names)
      expect(dotenv(text)).toEqual(names)
      expect([present, conflicts]).toEqual([Object.keys(names), []])
    })
    fc.assert(property, { seed, numRuns: 2000 })
  })

  test('by a shell, which runs nothing of it', async () => {
    const values = fc.sample(value.filter(holds), { seed, numRuns: 300 })
    const names = Object.fromEntries(values.map((text, i) => [`V${i}`, text]))
    const { text } = merge('', names)
    const script = `set -a; eval "$1"; exec env -0`
    const { stdout } = await run('sh', ['-c', script, 'sh', text], { env: { PATH: process.env.PATH } })
    const read = stdout
      .split('\0')
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])
    expect(Object.fromEntries(read)).toMatchObject(names)
  })

  test('what has no such form is only what some of them would read otherwise', () => {
    const property = fc.property(value, (text) => {
      expect(quoted(text) === undefined).toBe(/['\r\n\0]|\\$/.test(text) || !text.isWellFormed())
    })
    fc.assert(property, { seed, numRuns: 2000 })
  })
})

describe('whatever else the file has stays as it is', () => {
  const line = fc.oneof(
    fc.constantFrom(
      '',
      '# a comment',
      '  # another',
      'export C=c',
      "D='d\nNEW=no\n'",
      'E=',
      'F = "f" # why',
      'broken',
      'G="open',
    ),
    value.map((text) => `H=${text}`),
  )
  const file = fc
    .tuple(fc.array(line), fc.constantFrom('\n', '\r\n'), fc.boolean())
    .map(([lines, newline, isClosed]) => lines.join(newline) + (isClosed ? newline : ''))

  test('with any file', () => {
    const property = fc.property(file, value.filter(holds), fc.boolean(), (before, text, overwrite) => {
      const { NEW: _, ...others } = parseEnv(before)
      const { text: after, present, conflicts } = merge(before, { NEW: text }, overwrite)
      const { NEW: now, ...left } = parseEnv(after)
      expect(left).toEqual(others)
      if (present.length > 0) expect(now).toBe(text)
      else expect([conflicts, after]).toEqual([['NEW'], before])
    })
    fc.assert(property, { seed, numRuns: 2000 })
  })

  test.each([
    { what: 'an empty one', before: '', after: '# Signed up\nA=1\n' },
    { what: 'one without a last newline', before: 'B=2', after: 'B=2\n# Signed up\nA=1\n' },
    { what: 'one with CRLF', before: 'B=2\r\n', after: 'B=2\r\n# Signed up\r\nA=1\r\n' },
    { what: 'one that waits for the value', before: 'A=\nB=2\n', after: 'A=\nB=2\n# Signed up\nA=1\n' },
  ])('$what', ({ before, after }) => {
    expect(merge(before, { A: '1' })).toEqual({ text: after, present: ['A'], conflicts: [] })
  })
})

describe('the file', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-env-'))
  })
  afterEach(() => rm(folder, { recursive: true }))
  const at = (name: string) => path.join(folder, name)
  const line = async () => ({ lines: 'A=1\n' })

  test('of another user is none to write to: its owner alone can close it to others', async () => {
    await writeFile(at('.env'), '', { mode: 0o666 })
    const { uid } = await stat(at('.env'))
    await writablePlace(at('.env'), uid)
    await expect(writablePlace(at('.env'), uid + 1)).rejects.toThrow(/another user's/)
  })

  test('is looked for and left as it was', async () => {
    await writablePlace(at('.env'))
    expect(await readdir(folder)).toEqual([])
    await writeFile(at('.env'), 'B=2', { mode: 0o640 })
    await writablePlace(at('.env'))
    expect([await readFile(at('.env'), 'utf8'), (await stat(at('.env'))).mode & 0o777]).toEqual([
      'B=2',
      0o640,
    ])
  })

  test('that cannot be written is found at once', async () => {
    await mkdir(at('folder'))
    await symlink('nowhere/.env', at('dangling'))
    for (const name of ['folder', 'none/.env', 'dangling', 'a'.repeat(256)])
      await expect(writablePlace(at(name)), name).rejects.toThrow()
  })

  test('that a link has taken the place of since is not written to, nor what the link leads to', async () => {
    await writeFile(at('.env'), 'B=2\n')
    await writeFile(at('profile'), 'mine\n')
    const place = await writablePlace(at('.env'))
    await rename(at('.env'), at('moved'))
    await symlink('profile', at('.env'))
    await expect(changeText(place, line)).rejects.toThrow()
    expect(await readFile(at('profile'), 'utf8')).toBe('mine\n')
  })

  test('in a folder that a link has taken the place of since is not written to', async () => {
    await mkdir(at('place'))
    await mkdir(at('elsewhere'))
    const place = await writablePlace(at('place/.env'))
    await rename(at('place'), at('moved'))
    await symlink('elsewhere', at('place'))
    await expect(changeText(place, line)).rejects.toThrow(/a link has come/)
    expect(await readFile(at('elsewhere/.env'), 'utf8').catch(() => '')).toBe('')
  })

  test('behind a link that was there before is written, and stays behind it', async () => {
    await mkdir(at('real'))
    await writeFile(at('real/shared'), 'B=2\n')
    await symlink('real/shared', at('.env'))
    await changeText(await writablePlace(at('.env')), line)
    expect(await readFile(at('real/shared'), 'utf8')).toBe('B=2\nA=1\n')
  })

  test('that an editor has replaced meanwhile is written', async () => {
    const place = await writablePlace(at('.env'))
    await writeFile(at('new'), 'B=2\n')
    await rename(at('new'), at('.env'))
    await changeText(place, line)
    expect(await readFile(at('.env'), 'utf8')).toBe('B=2\nA=1\n')
  })

  test('beside it gets a number where its name is taken, but for the same text', async () => {
    const place = await writablePlace(at('.env'))
    const write = (text: string) => writeExtraFile(place, { ending: '.from-acme', text })
    await symlink('target', at('.env.from-acme'))
    expect(await write('one')).toBe(at('.env.from-acme.2'))
    expect(await write('one')).toBe(at('.env.from-acme.2'))
    expect(await write('two')).toBe(at('.env.from-acme.3'))
    expect(await readdir(folder)).not.toContain('target')
  })
})

describe('a variable that is there', () => {
  test('keeps its value, and is a conflict', () => {
    expect(merge('A=old\n', { A: 'new', B: 'b' })).toEqual({
      text: 'A=old\n# Signed up\nB=b\n',
      present: ['B'],
      conflicts: ['A'],
    })
  })

  test('is no conflict when it is the same', () => {
    expect(merge('A="same"\n', { A: 'same' })).toMatchObject({
      text: 'A="same"\n',
      present: ['A'],
      conflicts: [],
    })
  })

  test('is replaced when that is asked for: readers take the last one', () => {
    const before = 'export A="old\nB=not a variable\n" # why\nC=3\nA=again\n'
    const { text, present } = merge(before, { A: 'new' }, true)
    expect([text, present]).toEqual([`${before}# Signed up\nA=new\n`, ['A']])
    expect([parseEnv(text), dotenv(text)]).toEqual([
      { A: 'new', C: '3' },
      { A: 'new', C: '3' },
    ])
  })
})

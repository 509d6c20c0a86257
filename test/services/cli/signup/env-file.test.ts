import { execFile } from 'node:child_process'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseEnv, promisify } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { additionTo, quoted, requireWritable } from '../../../../services/cli/signup/env-file.ts'

const run = promisify(execFile)
const seed = Date.now()
console.log(`seed ${seed}`)

const comment = 'Signed up'
/** The file's text afterwards, and what became of the values. */
function merge(before: string, values: Record<string, string>, overwrite = false) {
  const given = new Map(Object.entries(values))
  const { lines, ...rest } = additionTo(before, given, { comment, overwrites: () => overwrite })
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
      const { text, kept, conflicts, unquotable } = merge('', names)
      expect(parseEnv(text)).toEqual(names)
      expect(dotenv(text)).toEqual(names)
      expect([kept, conflicts, unquotable]).toEqual([Object.keys(names), [], []])
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
      expect(quoted(text) === undefined).toBe(/['\r\0]|\\$/.test(text) || !text.isWellFormed())
    })
    fc.assert(property, { seed, numRuns: 2000 })
    expect(merge('A=1\n', { B: "it's" })).toMatchObject({
      text: 'A=1\n',
      kept: [],
      unquotable: ['B'],
    })
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
      const { text: after, kept, conflicts } = merge(before, { NEW: text }, overwrite)
      const { NEW: now, ...left } = parseEnv(after)
      expect(left).toEqual(others)
      if (kept.length > 0) expect(now).toBe(text)
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
    expect(merge(before, { A: '1' })).toEqual({ text: after, kept: ['A'], conflicts: [], unquotable: [] })
  })
})

test("another user's file is none to write to: its owner alone can close it to others", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-env-'))
  const file = path.join(folder, '.env')
  await writeFile(file, '', { mode: 0o666 })
  const { uid } = await stat(file)
  await requireWritable(file, uid)
  await expect(requireWritable(file, uid + 1)).rejects.toThrow(/another user's/)
  await rm(folder, { recursive: true })
})

describe('a variable that is there', () => {
  test('keeps its value, and is a conflict', () => {
    expect(merge('A=old\n', { A: 'new', B: 'b' })).toEqual({
      text: 'A=old\n# Signed up\nB=b\n',
      kept: ['B'],
      conflicts: ['A'],
      unquotable: [],
    })
  })

  test('is no conflict when it is the same', () => {
    expect(merge('A="same"\n', { A: 'same' })).toMatchObject({
      text: 'A="same"\n',
      kept: ['A'],
      conflicts: [],
    })
  })

  test('is replaced when that is asked for: readers take the last one', () => {
    const before = 'export A="old\nB=not a variable\n" # why\nC=3\nA=again\n'
    const { text, kept } = merge(before, { A: 'new' }, true)
    expect([text, kept]).toEqual([`${before}# Signed up\nA=new\n`, ['A']])
    expect([parseEnv(text), dotenv(text)]).toEqual([
      { A: 'new', C: '3' },
      { A: 'new', C: '3' },
    ])
  })
})

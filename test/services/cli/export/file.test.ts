import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ExportColumn } from '../../../../services/cli/export/columns.ts'
import { exportFormats, writeExport } from '../../../../services/cli/export/file.ts'
import type { RowSink } from '../../../../services/cli/export/selection.ts'

const columns: ExportColumn[] = [{ name: 'place', type: 'integer' }]

let folder: string
let file: string
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tidegate-export-file-'))
  file = path.join(folder, 'rows.csv')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const write = (fill: (add: RowSink['add']) => Promise<void>) =>
  writeExport({ file, format: 'csv', columns }, fill)
const fill = (add: RowSink['add']) => add([{ place: 1 }, { place: 2 }])
const complete = 'place\r\n1\r\n2\r\n'

describe('the export file', () => {
  it('has its final name only once complete, and only its owner can read it', async () => {
    const rows = await write(async (add) => {
      await fill(add)
      expect(await readdir(folder)).toEqual(['rows.csv.part'])
      expect((await stat(`${file}.part`)).mode & 0o777).toBe(0o600)
    })
    expect(rows).toBe(2)
    expect(await readdir(folder)).toEqual(['rows.csv'])
    expect(await readFile(file, 'utf8')).toBe(complete)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
  })

  it.each(exportFormats)('grows with each addition, in %s', async (format) => {
    const sizes: number[] = []
    await writeExport({ file, format, columns }, async (add) => {
      for (let i = 0; i < 3; i++) {
        await fill(add)
        sizes.push((await stat(`${file}.part`)).size)
      }
    })
    expect(sizes).toEqual([...new Set(sizes)].sort((a, b) => a - b))
  })

  it('is deleted after a failure', async () => {
    const failing = write(async (add) => {
      await fill(add)
      throw new Error('the database is gone')
    })
    await expect(failing).rejects.toThrow('the database is gone')
    expect(await readdir(folder)).toEqual([])
  })

  it('replaces the partial file of a killed export', async () => {
    await writeFile(`${file}.part`, 'place\r\n9\r\n', { mode: 0o644 })
    await write(fill)
    expect(await readdir(folder)).toEqual(['rows.csv'])
    expect(await readFile(file, 'utf8')).toBe(complete)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
  })

  it.each([
    ['before the export', () => writeFile(file, 'mine')],
    ['as a dangling link', () => symlink('/nowhere/at/all', file)],
  ])('never replaces a file that exists %s', async (_, make) => {
    await make()
    let hasStarted = false
    const writing = write(async () => {
      hasStarted = true
    })
    await expect(writing).rejects.toThrow(
      `--out: ${file} already exists: delete it, or choose a new file`,
    )
    expect(hasStarted).toBe(false)
    expect(await readdir(folder)).toEqual(['rows.csv'])
  })

  it('never replaces a file that was created in the meantime', async () => {
    const writing = write(async (add) => {
      await fill(add)
      await writeFile(file, 'mine')
    })
    await expect(writing).rejects.toThrow('already exists')
    expect(await readdir(folder)).toEqual(['rows.csv'])
    expect(await readFile(file, 'utf8')).toBe('mine')
  })

  it('gets its final name from only one of two concurrent exports', async () => {
    const inner = Promise.withResolvers<void>()
    const started = Promise.withResolvers<void>()
    const first = write(async (add) => {
      await fill(add)
      started.resolve()
      await inner.promise
    })
    await started.promise
    const second = write(async (add) => {
      await add([{ place: 9 }])
      inner.resolve()
      await expect(first).rejects.toThrow(`another export is already writing ${file}.part`)
      expect(await readdir(folder)).toEqual(['rows.csv.part'])
    })
    expect(await second).toBe(1)
    expect(await readFile(file, 'utf8')).toBe('place\r\n9\r\n')
  })
})

it('text that a spreadsheet would run as a formula gets an apostrophe, in CSV only', async () => {
  const texts: ExportColumn[] = [
    { name: 'user_agent', type: 'text' },
    { name: 'points', type: 'integer' },
  ]
  const formula = '=HYPERLINK("https://evil.example")'
  const rows = [
    { user_agent: formula, points: -5 },
    { user_agent: '-1', points: 1 },
    { user_agent: 'a=1', points: null },
  ]
  const written = async (format: 'csv' | 'jsonl') => {
    const file = path.join(folder, `texts.${format}`)
    await writeExport({ file, format, columns: texts }, (add) => add(rows))
    return readFile(file, 'utf8')
  }
  expect((await written('csv')).split('\r\n')).toEqual([
    'user_agent,points',
    `"'=HYPERLINK(""https://evil.example"")",-5`,
    "'-1,1",
    'a=1,',
    '',
  ])
  expect(JSON.parse((await written('jsonl')).split('\n')[0] ?? '')).toEqual(rows[0])
})

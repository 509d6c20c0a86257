import { lstat, open, rename, rm } from 'node:fs/promises'
import { systemCode } from '../../../infra/thrown.ts'
import type { ExportColumn, RowEncoder } from './columns.ts'
import type { RowSink } from './selection.ts'
import { csvEncoder, jsonLinesEncoder } from './text-formats.ts'

export const exportFormats = ['parquet', 'jsonl', 'csv'] as const
export type ExportFormat = (typeof exportFormats)[number]

const encoders: Record<
  ExportFormat,
  (columns: ExportColumn[]) => Promise<RowEncoder> | RowEncoder
> = {
  parquet: async (columns) => (await import('./parquet.ts')).parquetEncoder(columns),
  jsonl: jsonLinesEncoder,
  csv: csvEncoder,
}

/**
 * Writes the rows that `fill` adds, and returns how many there are. The file is called `<file>.part` until it is complete
 * and on the disk. Throws where the file exists.
 */
export async function writeExport(
  { file, format, columns }: { file: string; format: ExportFormat; columns: ExportColumn[] },
  fill: (add: RowSink['add']) => Promise<void>,
): Promise<number> {
  const part = `${file}.part`
  let count = 0

  // 1. Replace what an interrupted export has left.
  await requireNew(file)
  await rm(part, { force: true })
  const handle = await open(part, 'wx', 0o600)
  // False where another export to the same file has replaced it.
  const isOurs = async () => (await find(part))?.ino === (await handle.stat()).ino
  try {
    // 2. Write the rows.
    const encoder = await encoders[format](columns)
    await handle.appendFile(encoder.start())
    await fill(async (rows) => {
      await handle.appendFile(encoder.encode(rows))
      count += rows.length
    })
    await handle.appendFile(encoder.end())
    await handle.sync()

    // 3. Give it its name, unless the name was taken meanwhile.
    await requireNew(file)
    if (!(await isOurs())) throw new Error(`another export is writing ${part}. Run one at a time.`)
    await rename(part, file)
    return count
  } catch (error) {
    if (await isOurs()) await rm(part)
    throw error
  } finally {
    await handle.close()
  }
}

async function requireNew(file: string): Promise<void> {
  if (await find(file))
    throw new Error(`--out: ${file} exists already. Delete it, or name a new file.`)
}

const find = (file: string) =>
  lstat(file).catch((error: unknown) => {
    if (systemCode(error) !== 'ENOENT') throw error
  })

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
 * Writes the rows that `fill` adds and returns their number. The file is named `<file>.part` until it is complete and
 * synced to disk. Throws if the file exists.
 */
export async function writeExport(
  { file, format, columns }: { file: string; format: ExportFormat; columns: ExportColumn[] },
  fill: (add: RowSink['add']) => Promise<void>,
): Promise<number> {
  const partFile = `${file}.part`
  let count = 0

  // 1. Replace the partial file of an interrupted export.
  await requireNew(file)
  await rm(partFile, { force: true })
  const handle = await open(partFile, 'wx', 0o600)
  // False if another export to the same file has replaced it.
  const isOurs = async () => (await statIfExists(partFile))?.ino === (await handle.stat()).ino
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

    // 3. Rename it, unless the file was created in the meantime.
    await requireNew(file)
    if (!(await isOurs()))
      throw new Error(`another export is already writing ${partFile}: run one at a time`)
    await rename(partFile, file)
    return count
  } catch (error) {
    if (await isOurs()) await rm(partFile)
    throw error
  } finally {
    await handle.close()
  }
}

async function requireNew(file: string): Promise<void> {
  if (await statIfExists(file))
    throw new Error(`--out: ${file} already exists: delete it, or choose a new file`)
}

const statIfExists = (file: string) =>
  lstat(file).catch((error: unknown) => {
    if (systemCode(error) !== 'ENOENT') throw error
  })

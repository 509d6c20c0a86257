import { appendFile, open, rename, writeFile } from 'node:fs/promises'
import type { ExportColumn, ExportRow } from './columns.ts'
import { csvHead, csvOf, jsonLinesOf } from './text-formats.ts'

export const exportFormats = ['parquet', 'jsonl', 'csv'] as const
export type ExportFormat = (typeof exportFormats)[number]

/** A file that has its name once it is whole and on the disk. */
export interface PartWriter {
  add(rows: readonly ExportRow[]): Promise<void>
  /** How many rows it has. */
  finish(): Promise<number>
}

interface Writing {
  add(rows: readonly ExportRow[]): Promise<unknown> | unknown
  finish(): Promise<unknown> | unknown
}

/** What a file is called until it is whole. */
export const unfinished = (file: string): string => `${file}.part`

interface PartOptions {
  format: ExportFormat
  columns: ExportColumn[]
  /** So many rows, which are in memory meanwhile, are written at once: a row group of Parquet. */
  together: number
}

export async function openPart(
  file: string,
  { format, columns, together }: PartOptions,
): Promise<PartWriter> {
  const writing = await opened[format](unfinished(file), columns)
  let waiting: ExportRow[] = []
  let count = 0
  return {
    async add(rows) {
      waiting = waiting.concat(rows)
      count += rows.length
      if (waiting.length < together) return
      await writing.add(waiting)
      waiting = []
    },
    async finish() {
      await writing.add(waiting)
      await writing.finish()
      await moveIntoPlace(file)
      return count
    },
  }
}

const opened: Record<ExportFormat, (file: string, columns: ExportColumn[]) => Promise<Writing>> = {
  parquet: async (file, columns) => (await import('./parquet.ts')).parquetFile(file, columns),
  jsonl: (file, columns) => textFile(file, '', (rows) => jsonLinesOf(columns, rows)),
  csv: (file, columns) => textFile(file, csvHead(columns), (rows) => csvOf(columns, rows)),
}

// Opened for each addition, which are few, so that what fails in between leaves nothing open.
async function textFile(
  file: string,
  head: string,
  textOf: (rows: readonly ExportRow[]) => string,
): Promise<Writing> {
  await writeFile(file, head)
  return { add: (rows) => appendFile(file, textOf(rows)), finish: () => undefined }
}

/** Gives the unfinished file its name, in the place of one that had it. */
export async function moveIntoPlace(file: string): Promise<void> {
  const handle = await open(unfinished(file), 'r+')
  await handle.sync().finally(() => handle.close())
  await rename(unfinished(file), file)
}

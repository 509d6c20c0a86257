import { type FileHandle, open, rename } from 'node:fs/promises'
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
  jsonl: async (file, columns) => textFile(await open(file, 'w'), (rows) => jsonLinesOf(columns, rows)),
  csv: async (file, columns) => {
    const handle = await open(file, 'w')
    await handle.writeFile(csvHead(columns))
    return textFile(handle, (rows) => csvOf(columns, rows))
  },
}

const textFile = (handle: FileHandle, textOf: (rows: readonly ExportRow[]) => string): Writing => ({
  add: (rows) => handle.writeFile(textOf(rows)),
  finish: () => handle.close(),
})

/** Gives the unfinished file its name, in the place of one that had it. */
export async function moveIntoPlace(file: string): Promise<void> {
  const handle = await open(unfinished(file), 'r+')
  await handle.sync().finally(() => handle.close())
  await rename(unfinished(file), file)
}

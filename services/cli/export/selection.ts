import type { ExportRow } from './columns.ts'

export interface ExportSelection {
  /** Epoch milliseconds. */
  since: number
  /** Not included. */
  until: number
  organizationId: string | null
  environment: string | null
  /** With what is opened by the master keys. */
  isOpen: boolean
}

export interface EventSelection extends ExportSelection {
  topic: string
  type: string | null
}

export interface RowSink {
  /** Writes rows to the file: a row group of Parquet for each call. */
  add(rows: readonly ExportRow[]): Promise<void>
  /** Gets how many sessions or offsets were read, of how many. */
  onProgress(done: number, total: number): void
}

import type { ExportRow } from './columns.ts'

export interface ExportSelection {
  /** Epoch milliseconds. */
  since: number
  /** Exclusive. */
  until: number
  organizationId: string | null
  environment: string | null
  /** Includes data that needs the master keys: personal event fields, and restricted columns of sessions. */
  decrypts: boolean
}

export interface EventSelection extends ExportSelection {
  topic: string
  type: string | null
}

export interface RowSink {
  /** Writes rows to the file; in Parquet, each call writes a row group. */
  add(rows: readonly ExportRow[]): Promise<void>
  /** Reports the number of sessions or log offsets read so far. */
  onProgress(done: number, total: number): void
}

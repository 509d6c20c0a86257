import { factsRecord } from '../../../projections/sessions/facts-schema.ts'

/** Type of a column's values. `time` is in epoch milliseconds, `texts` and `integers` are lists. */
export type ColumnType =
  | 'text'
  | 'integer'
  | 'bigint'
  | 'boolean'
  | 'time'
  | 'texts'
  | 'integers'
  | 'json'

export interface ExportColumn {
  name: string
  type: ColumnType
}

/** Values by column name; null or missing if unknown. */
export type ExportRow = Readonly<Record<string, unknown>>

/** Encoder of an export file: the file is the output of `start`, of each `encode`, and of `end`. */
export interface RowEncoder {
  start(): string | Uint8Array
  encode(rows: readonly ExportRow[]): string | Uint8Array
  end(): string | Uint8Array
}

export const sessionColumns = (): ExportColumn[] =>
  factsRecord().fields.map(({ name, type }) => ({
    name,
    type:
      name === 'repeats' ? 'json' : typeOf(JSON.stringify(Array.isArray(type) ? type[1] : type)),
  }))

function typeOf(avroType: string): ColumnType {
  const columnType = columnTypes[avroType]
  if (!columnType) throw new Error(`exports do not support the type ${avroType}`)
  return columnType
}

const columnTypes: Record<string, ColumnType> = {
  '"string"': 'text',
  '"int"': 'integer',
  '"long"': 'bigint',
  '"boolean"': 'boolean',
  '{"type":"long","logicalType":"timestamp-millis"}': 'time',
  '{"type":"array","items":"string"}': 'texts',
  '{"type":"array","items":"int"}': 'integers',
}

export const eventColumns: ExportColumn[] = [
  { name: 'event_id', type: 'text' },
  { name: 'type', type: 'text' },
  { name: 'time', type: 'time' },
  { name: 'organization_id', type: 'text' },
  { name: 'environment', type: 'text' },
  { name: 'key', type: 'text' },
  { name: 'partition', type: 'integer' },
  { name: 'offset', type: 'bigint' },
  { name: 'recorded_at', type: 'time' },
  { name: 'sealed', type: 'text' },
  { name: 'data', type: 'json' },
]

import { factsRecord } from '../../../projections/sessions/facts-schema.ts'

/** Type of a column's values: `time` is epoch milliseconds, `json` any JSON value, `texts` and `integers` are lists. */
export type ColumnKind =
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
  type: ColumnKind
}

/** Values by column name; null or missing if unknown. */
export type ExportRow = Readonly<Record<string, unknown>>

/** Encoder of a file, which is the output of `start`, then of `encode` for the rows in order, then of `end`. */
export interface RowEncoder {
  start(): string | Uint8Array
  encode(rows: readonly ExportRow[]): string | Uint8Array
  end(): string | Uint8Array
}

/** Returns the columns of the session facts schema. */
export const sessionColumns = (): ExportColumn[] =>
  factsRecord().fields.map(({ name, type }) => ({
    name,
    type:
      name === 'repeats' ? 'json' : kindOf(JSON.stringify(Array.isArray(type) ? type[1] : type)),
  }))

function kindOf(avro: string): ColumnKind {
  const kind = kinds[avro]
  if (!kind) throw new Error(`exports do not support the type ${avro}`)
  return kind
}

const kinds: Record<string, ColumnKind> = {
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

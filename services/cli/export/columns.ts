import { factsRecord } from '../../../projections/sessions/facts-schema.ts'

/** `time` is epoch milliseconds, and `json` any value that JSON has. */
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

/** By the names of the columns. What is null or missing is not known. */
export type ExportRow = Readonly<Record<string, unknown>>

/** The bytes of a file: those of `start`, of the rows in their order, and of `end`. */
export interface RowEncoder {
  start(): string | Uint8Array
  encode(rows: readonly ExportRow[]): string | Uint8Array
  end(): string | Uint8Array
}

/** Those of a flat row. */
export const sessionColumns = (): ExportColumn[] =>
  factsRecord().fields.map(({ name, type }) => ({
    name,
    type:
      name === 'repeats' ? 'json' : kindOf(JSON.stringify(Array.isArray(type) ? type[1] : type)),
  }))

function kindOf(avro: string): ColumnKind {
  const kind = kinds[avro]
  if (!kind) throw new Error(`no export has the type ${avro}`)
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

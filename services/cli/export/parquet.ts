import { zstdCompressSync } from 'node:zlib'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import type { ColumnType, ExportColumn, RowEncoder } from './columns.ts'

/** Encodes rows as Parquet: each call of `encode` is a row group. */
export function parquetEncoder(columns: ExportColumn[]): RowEncoder {
  const buffer = new ByteWriter()
  const writer = new ParquetWriter({
    writer: buffer,
    schema: [{ name: 'root', num_children: columns.length }, ...columns.flatMap(elementsOf)],
    codec: 'ZSTD',
    compressors: { ZSTD: (bytes) => zstdCompressSync(bytes) },
  })
  const takeBytes = () => {
    const bytes = buffer.getBytes().slice()
    buffer.index = 0
    return bytes
  }
  return {
    start: takeBytes,
    encode(rows) {
      if (rows.length === 0) return ''
      writer.write({
        columnData: columns.map(({ name, type }) => ({
          name,
          data: rows.map((row) => parquetValue(type, row[name] ?? null)),
          // Min/max statistics double the time, and are useless for lists and documents.
          statistics: !['json', 'texts', 'integers'].includes(type),
        })),
        rowGroupSize: rows.length,
      })
      return takeBytes()
    },
    end() {
      writer.finish()
      return takeBytes()
    },
  }
}

function parquetValue(type: ColumnType, value: unknown): unknown {
  if (value === null) return null
  if (type === 'bigint') return BigInt(Number(value))
  return type === 'time' ? new Date(Number(value)) : value
}

type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number]

const text: Partial<SchemaElement> = { type: 'BYTE_ARRAY', converted_type: 'UTF8' }
const integer: Partial<SchemaElement> = { type: 'INT32' }

// Uses the legacy converted types, which every reader supports; with logical types, DuckDB adds a time zone to times.
const leaves: Record<ColumnType, Partial<SchemaElement>> = {
  text,
  integer,
  bigint: { type: 'INT64' },
  boolean: { type: 'BOOLEAN' },
  time: { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' },
  json: { type: 'BYTE_ARRAY', converted_type: 'JSON' },
  texts: text,
  integers: integer,
}

// Lists have three levels, which distinguish null from empty (parquet-format, "LogicalTypes.md", lists).
function elementsOf({ name, type }: ExportColumn): SchemaElement[] {
  const leaf = leaves[type]
  if (type !== 'texts' && type !== 'integers')
    return [{ ...leaf, name, repetition_type: 'OPTIONAL' }]
  return [
    { name, repetition_type: 'OPTIONAL', converted_type: 'LIST', num_children: 1 },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    { ...leaf, name: 'element', repetition_type: 'OPTIONAL' },
  ]
}

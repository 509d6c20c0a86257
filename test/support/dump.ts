import { randomBytes } from 'node:crypto'
import { gunzipSync, inflateRawSync, inflateSync } from 'node:zlib'
import pg from 'pg'
import { pino } from 'pino'
import { createCodec } from '../../infra/event-store/codec.ts'
import { createKafkaClient } from '../../infra/log/kafka/client.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { Place } from './secret-scan.ts'

// Keeps values in Postgres's text format, which is hex for bytea.
const asText = { getTypeParser: () => (value: string) => value }
const byteaOid = 17

/**
 * Every column of every table of every schema, as text; of bytea each value as its bytes, and what it holds deflated.
 */
export async function dumpDatabase(url: string): Promise<Place[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ name: string }>(
      `select format('%I.%I', nspname, relname) as name from pg_class join pg_namespace n on n.oid = relnamespace
       where relkind in ('r', 'm') and nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
       order by 1`,
    )
    const places: Place[] = []
    for (const { name } of rows) places.push(...(await dumpTable(client, name)))
    return [...places, await statements(client)]
  } finally {
    await client.end()
  }
}

async function dumpTable(client: pg.Client, table: string): Promise<Place[]> {
  const query = { text: `select * from ${table}`, rowMode: 'array' as const, types: asText }
  const { rows, fields } = await client.query<(string | null)[]>(query)
  return fields.flatMap(({ name, dataTypeID }, i) => {
    const place = `table ${table}.${name}`
    const values = rows.map((row) => row[i] ?? null).filter((value) => value !== null)
    if (dataTypeID !== byteaOid) return [{ name: place, bytes: Buffer.from(values.join('\n')) }]
    const bytes = values.map((value) => Buffer.from(value.slice(2), 'hex'))
    return bytes.flatMap((value) => [
      { name: place, bytes: value },
      ...inside({ name: place, bytes: value }),
    ])
  })
}

/** Returns the last statement of each connection, which shows values that were not bound as parameters. */
async function statements(client: pg.Client): Promise<Place> {
  const { rows } = await client.query<{ query: string | null }>(
    'select query from pg_stat_activity',
  )
  return {
    name: 'pg_stat_activity',
    bytes: Buffer.from(rows.map(({ query }) => query ?? '').join('\n')),
  }
}

const codec = createCodec()

/** Returns the value with its decompressed parts: deflated fields of an event, or the value if it is compressed. */
function inside({ name, bytes }: Place): Place[] {
  const parts = [bytes, ...bytesOfEvent(bytes)]
  return parts.flatMap((part) =>
    unpackersFor(part).flatMap((unpack) => {
      try {
        return [{ name: `${name} inflated`, bytes: unpack(part) }]
      } catch {
        return []
      }
    }),
  )
}

// Selects by the first bytes (RFC 1952 and RFC 1950), because failing decompressors throw, which is slow. Raw deflated
// data can start with any byte.
function unpackersFor(bytes: Buffer): ((bytes: Buffer) => Buffer)[] {
  const [first = 0, second = 0] = bytes
  const isZlib = (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0
  return [
    ...(first === 0x1f && second === 0x8b ? [gunzipSync] : []),
    ...(isZlib ? [inflateSync] : []),
    inflateRawSync,
  ]
}

/** Returns the binary fields of an event; none for other values. */
export function bytesOfEvent(value: Buffer): Buffer[] {
  try {
    return Object.values(codec.decode(value).data).filter((field) => Buffer.isBuffer(field))
  } catch {
    return []
  }
}

/** Returns all records of topics with the prefix: key, value, headers, and decompressed parts of the value. */
export async function dumpTopics({
  brokers,
  prefix,
}: {
  brokers: string
  prefix: string
}): Promise<Place[]> {
  const kafka = createKafkaClient({
    brokers: brokers.split(','),
    logger: pino({ level: 'silent' }),
  })
  const admin = kafka.admin()
  await admin.connect()
  const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix))
  const ends = await Promise.all(topics.map((topic) => admin.fetchTopicOffsets(topic)))
  const expected = ends.flat().reduce((sum, { high, low }) => sum + Number(high) - Number(low), 0)
  const groupId = `scan-${randomBytes(6).toString('hex')}`
  const consumer = kafka.consumer({ groupId })
  const places: Place[] = []
  try {
    await consumer.connect()
    await consumer.subscribe({ topics, fromBeginning: true })
    const { promise: all, resolve } = Promise.withResolvers<void>()
    let read = 0
    if (expected === 0) resolve()
    const eachMessage = async ({ topic, message }: { topic: string; message: RawRecord }) => {
      places.push(...recordPlaces(topic, message))
      if (++read === expected) resolve()
    }
    await consumer.run({ eachMessage })
    await all
  } finally {
    await consumer.disconnect()
    await admin.deleteGroups([groupId]).catch(() => {})
    await admin.disconnect()
  }
  return places
}

interface RawRecord {
  key: Buffer | null
  value: Buffer | null
  headers?: Record<string, unknown>
}

function recordPlaces(topic: string, { key, value, headers = {} }: RawRecord): Place[] {
  const name = `topic ${topic}`
  const texts = Object.entries(headers).map(([header, text]) => `${header}: ${String(text)}`)
  return [
    { name: `${name} key`, bytes: key ?? Buffer.alloc(0) },
    { name: `${name} headers`, bytes: Buffer.from(texts.join('\n')) },
    { name, bytes: value ?? Buffer.alloc(0) },
    ...inside({ name, bytes: value ?? Buffer.alloc(0) }),
  ]
}

/** Returns the end of the WAL, after switching files so that all earlier writes are in them. */
export async function walPosition(db: Db): Promise<string> {
  const { rows } = await db.query<{ lsn: string }>('select pg_switch_wal() as lsn')
  return rows[0]?.lsn ?? ''
}

/** Returns the contents of the WAL files since a result of `walPosition`. */
export async function dumpWal(db: Db, since: string): Promise<Place[]> {
  const until = await walPosition(db)
  const { rows } = await db.query<FileRow>(
    `select f.name, pg_read_binary_file('pg_wal/' || f.name, 0,
       case when f.name = b.file_name then b.file_offset else size end, true) as bytes
     from pg_ls_waldir() f, pg_walfile_name_offset($2) b
     where f.name between pg_walfile_name($1::pg_lsn + 1) and b.file_name order by 1`,
    [since, until],
  )
  return rows.flatMap(({ name, bytes }) => {
    const place = { name: `pg_wal/${name}`, bytes }
    return [place, { ...place, bytes: withoutPageHeaders(bytes) }]
  })
}

/** Returns the files of the database after writing Postgres's memory to them. */
export async function dumpDatabaseFiles(db: Db): Promise<Place[]> {
  const name = `flush_${randomBytes(6).toString('hex')}`
  // Checkpoints skip unlogged tables, except for one before a file copy.
  await db.query(`create database ${name} template template0 strategy file_copy`)
  await db.query(`drop database ${name}`)
  const { rows } = await db.query<FileRow>(
    `select name, pg_read_binary_file(name, 0, 1000000000, true) as bytes
     from (select format('base/%s/%s', d.oid, pg_ls_dir('base/' || d.oid)) as name
       from pg_database d where datname = current_database()) as files`,
  )
  return rows.filter(({ bytes }) => bytes !== null)
}

interface FileRow {
  name: string
  bytes: Buffer
}

const walPage = { bytes: 8192, header: 24, firstHeader: 40 }

/** Removes headers of WAL pages, which split records at page boundaries (access/xlog_internal.h). */
export function withoutPageHeaders(wal: Buffer): Buffer {
  const pages: Buffer[] = []
  for (let at = 0; at < wal.length; at += walPage.bytes)
    pages.push(
      wal.subarray(at + (at === 0 ? walPage.firstHeader : walPage.header), at + walPage.bytes),
    )
  return Buffer.concat(pages)
}

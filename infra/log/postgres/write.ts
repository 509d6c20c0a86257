import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { z } from 'zod'
import { arrayParameter } from '../../postgres/array-parameter.ts'
import type { PlacedRecord } from '../group-commit.ts'
import { LogUnavailable, type Position, type Topic } from '../port.ts'

interface Part {
  topic: Topic
  partition: number
  count: number
}

interface Layout {
  parts: Part[]
  /** For each record the index of its part, and its place among that part's records. */
  slots: { part: number; place: number }[]
}

const answer = z.tuple([z.object({ bases: z.array(z.number()) })])

/** The server ends a write that takes longer; a client that gives up later can be sure that none is under way. */
export const writeTimeoutMs = 4000

/** Writes one batch durably, in one transaction and one round trip; rejects with LogUnavailable. */
export async function writeBatch(
  pool: pg.Pool,
  schema: string,
  records: PlacedRecord[],
): Promise<Position[]> {
  const layout = layOut(records)
  const text = `select array_to_json(${schema}.append($1, $2, $3, $4, $5, $6, $7, $8)) as bases`
  const client = await pool.connect().catch((cause) => {
    throw new LogUnavailable('the log could not be reached', { cause })
  })
  let failure: unknown
  try {
    const { rows } = await client.query({
      name: `${schema}.append`,
      text,
      values: parameters(records, layout),
    })
    return positionsOf(records, layout, answer.parse(rows)[0].bases)
  } catch (cause) {
    failure = cause
    const settled = isRefusal(cause) ? undefined : delay(writeTimeoutMs, undefined, { ref: false })
    throw new LogUnavailable('the log did not confirm the write', { cause, settled })
  } finally {
    client.release(failure !== undefined)
  }
}

/** The server answered and the connection goes on: nothing was written. Without an answer the write may go on there. */
const isRefusal = (error: unknown): boolean => error instanceof pg.DatabaseError && error.severity === 'ERROR'

function layOut(records: PlacedRecord[]): Layout {
  const parts: Part[] = []
  const indexes = new Map<string, number>()
  const slots = records.map(({ topic, partition }) => {
    const name = `${topic} ${partition}`
    const index = indexes.get(name) ?? parts.push({ topic, partition, count: 0 }) - 1
    indexes.set(name, index)
    const part = parts[index]
    return { part: index, place: part ? part.count++ : 0 }
  })
  return { parts, slots }
}

function parameters(records: PlacedRecord[], { parts, slots }: Layout): Buffer[] {
  return [
    arrayParameter(
      'text',
      parts.map((part) => part.topic),
    ),
    arrayParameter(
      'integer',
      parts.map((part) => part.partition),
    ),
    arrayParameter(
      'integer',
      parts.map((part) => part.count),
    ),
    arrayParameter(
      'integer',
      slots.map((slot) => slot.part + 1),
    ),
    arrayParameter(
      'integer',
      slots.map((slot) => slot.place),
    ),
    arrayParameter(
      'text',
      records.map((record) => record.key),
    ),
    arrayParameter(
      'text',
      records.map((record) => JSON.stringify(record.headers)),
    ),
    arrayParameter(
      'bytea',
      records.map((record) => record.value),
    ),
  ]
}

function positionsOf(records: PlacedRecord[], { slots }: Layout, bases: number[]): Position[] {
  return records.map(({ topic, partition }, i) => {
    const slot = slots[i]
    const base = slot && bases[slot.part]
    if (!slot || base === undefined) throw new Error('the answer has too few offsets')
    return { topic, partition, offset: base + slot.place }
  })
}

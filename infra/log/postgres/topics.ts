import type pg from 'pg'
import { z } from 'zod'
import { LogUnavailable, type Topic, type TopicSpec } from '../port.ts'

export interface TopicInfo {
  topic: Topic
  /** Small number that stands for the topic in lock keys. */
  id: number
  partitions: number
}

const rowsOf = z.array(z.object({ topic: z.string(), id: z.number(), partitions: z.number() }))

/** What topics there are. A topic's partitions never change (its keys would move), so they are kept. */
export function createTopics(pool: pg.Pool, schema: string) {
  const known = new Map<Topic, TopicInfo>()

  async function find(topic: Topic): Promise<TopicInfo> {
    const found = known.get(topic) ?? (await load(topic))
    if (!found) throw new Error(`topic ${topic} does not exist`)
    return found
  }

  async function load(topic: Topic): Promise<TopicInfo | undefined> {
    const text = `select topic, id, partitions from ${schema}.topics where topic = $1`
    const { rows } = await pool.query(text, [topic]).catch((cause) => {
      throw new LogUnavailable('the log could not be read', { cause })
    })
    const [info] = rowsOf.parse(rows)
    if (info) known.set(topic, info)
    return info
  }

  /** A topic that exists keeps its number of partitions; its retention is set anew. */
  async function ensure({ topic, partitions, retentionMs }: TopicSpec): Promise<void> {
    // Not left to `on conflict` alone: that takes a number for the id each time, and there are 32,767.
    await pool.query(
      `insert into ${schema}.topics (topic, partitions)
       select $1, $2 where not exists (select from ${schema}.topics where topic = $1) on conflict do nothing`,
      [topic, partitions],
    )
    await pool.query(`update ${schema}.topics set retention_ms = $2 where topic = $1`, [
      topic,
      retentionMs ?? null,
    ])
    await pool.query(
      `insert into ${schema}.partitions (topic, partition)
       select topic, generate_series(0, partitions - 1) from ${schema}.topics where topic = $1
       on conflict do nothing`,
      [topic],
    )
    await find(topic)
  }

  return { find, ensure, known: (topic: Topic) => known.get(topic) }
}

export type Topics = ReturnType<typeof createTopics>

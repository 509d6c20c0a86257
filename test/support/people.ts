import { randomBytes } from 'node:crypto'
import { inflateRawSync } from 'node:zlib'
import { readConfig } from '../../infra/config.ts'
import { createKeyring } from '../../infra/crypto/keyring.ts'
import { createCodec } from '../../infra/event-store/codec.ts'
import { createDataKeys } from '../../infra/event-store/data-keys.ts'
import { decodeRecords } from '../../infra/event-store/event-batch.ts'
import { readTopicToEnd } from '../../infra/log/read-topic.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { eventTopics } from '../../schemas/events.ts'
import { openLog } from '../../services/server/dependencies.ts'
import type { Cluster, Owner } from './cluster.ts'
import { type Visit, visitAs } from './devices.ts'
import { noSkips } from './no-skips.ts'
import { silent } from './projections.ts'
import type { Place } from './secret-scan.ts'

/** Somebody with a device, an address, pages and a name that nobody else has. */
export interface PersonOf {
  n: number
  address: string
  url: string
  agent: string
  userId: string
  /** What is only ever said of this person. */
  marks: string[]
  visits: Visit[]
}

export function person(n: number): PersonOf {
  const own = `person-${String(n).padStart(4, '0')}x`
  const address = `198.18.${n >> 8}.${n & 255}`
  const url = `https://shop.example/${own}/cart`
  const userId = `${own}@shop.example`
  const agent = ` Marked/${own}`
  return {
    n,
    address,
    url,
    agent,
    userId,
    visits: [],
    marks: [own, `${address}"`, `canvas-${n}"`, `card-${n}"`],
  }
}

export async function visitOf(
  someone: PersonOf,
  { baseUrl, owner }: { baseUrl: string; owner: Owner },
): Promise<Visit> {
  const { address, url, agent, visits } = someone
  const continuity = visits.at(-1)?.continuity
  const kept = continuity === undefined ? {} : { continuity }
  const visit = await visitAs(someone.n, { baseUrl, owner, address, url, agent, ...kept })
  visits.push(visit)
  return visit
}

/** Every record of every topic, opened by every key that the server still has, and the payloads in them inflated. */
export async function openedRecords({ settings }: Pick<Cluster, 'settings'>): Promise<Place[]> {
  const config = readConfig(settings)
  const url = settings.DATABASE_URL ?? ''
  const pool = createPool({ url })
  const log = await openLog({ config, pool, url, logger: silent })
  const keyring = createKeyring(settings.TIDEGATE_MASTER_KEYS ?? '')
  const keys = createDataKeys({ pool, keyring, random: randomBytes, clock: Date.now })
  const codec = createCodec(undefined, { sealing: { keys, random: randomBytes } })
  const places: Place[] = []
  try {
    for (const topic of new Set(Object.values(eventTopics)))
      await readTopicToEnd({
        log,
        topic,
        async handle(batches) {
          for (const { records } of batches) {
            const { events } = await decodeRecords({ codec, skips: noSkips }, records)
            for (const { type, data, meta } of events)
              places.push({ name: `opened ${type}`, bytes: Buffer.from(readable({ data, meta })) })
          }
        },
      })
  } finally {
    await log.close()
    await pool.end()
  }
  return places
}

function readable(value: object): string {
  return JSON.stringify(value, (_, part) => {
    if (part?.type !== 'Buffer') return part
    const bytes = Buffer.from(part.data)
    try {
      return inflateRawSync(bytes).toString()
    } catch {
      return bytes.toString('latin1')
    }
  }).replaceAll('\\"', '"')
}

/** Where any of the marks stands. */
export function placesOf(marks: string[], places: Place[]): string[] {
  const wanted = marks.map((mark) => Buffer.from(mark))
  return places
    .filter(({ bytes }) => wanted.some((mark) => bytes.includes(mark)))
    .map(({ name }) => name)
}

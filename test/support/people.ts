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
import type { Installation } from './cluster.ts'
import { noSkips } from './no-skips.ts'
import { silent } from './projections.ts'
import type { Place } from './secret-scan.ts'

/** Returns all records of all topics, decrypted with every key that the server still has, and inflated payloads. */
export async function openedRecords({
  settings,
}: Pick<Installation, 'settings'>): Promise<Place[]> {
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

/** Returns the names of places that contain any of the marks. */
export function placesOf(marks: string[], places: Place[]): string[] {
  const wanted = marks.map((mark) => Buffer.from(mark))
  return places
    .filter(({ bytes }) => wanted.some((mark) => bytes.includes(mark)))
    .map(({ name }) => name)
}

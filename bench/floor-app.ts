import fastify, { type FastifyInstance, type onRequestHookHandler } from 'fastify'
import type { Config } from '../infra/config.ts'
import { openKafkaLog } from '../infra/log/kafka/log.ts'
import type { EventLog } from '../infra/log/port.ts'
import { openPostgresLog } from '../infra/log/postgres/log.ts'
import { createPool } from '../infra/postgres/pool.ts'
import { createLogger } from '../infra/telemetry.ts'

const topic = 'bench.floor.v1'

/** Creates a bare Fastify app on the configured log. `serve` listens until SIGTERM, then closes everything. */
export async function openFloor(config: Config) {
  const { DATABASE_URL: url, KAFKA_BROKERS: brokers, KAFKA_TOPIC_PREFIX: topicPrefix } = config
  if (!url) throw new Error('DATABASE_URL is not set')
  const logger = createLogger('warn')
  const pool = createPool({ url, max: 20 })
  const log =
    brokers.length > 0
      ? await openKafkaLog({ brokers, topicPrefix, logger })
      : await openPostgresLog({ pool, url, logger })
  await log.ensureTopics([{ topic, partitions: config.TOPIC_PARTITIONS }])
  const app = fastify()
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))

  async function serve(closeFirst: () => Promise<void> = async () => {}): Promise<void> {
    console.log(`Floor is ready: ${await app.listen({ port: 0, host: '127.0.0.1' })}`)
    process.once('SIGTERM', async () => {
      await app.close()
      await closeFirst()
      await log.close()
      await pool.end()
    })
  }
  return { app, log, pool, url, serve }
}

export interface AppendRoute {
  path: string
  log: Pick<EventLog, 'append'>
  onRequest?: onRequestHookHandler
}

/** Adds `POST {path}/:key`, which appends the body. */
export function addAppend(app: FastifyInstance, { path, log, onRequest }: AppendRoute): void {
  app.post<{ Params: { key: string }; Body: Buffer }>(
    `${path}/:key`,
    onRequest ? { onRequest } : {},
    async ({ params, body }) => {
      await log.append([{ topic, key: params.key, value: body, headers: { type: 'Floor' } }])
      return { ack: true }
    },
  )
}

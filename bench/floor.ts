import fastify from 'fastify'
import { readConfig } from '../infra/config.ts'
import { openKafkaLog } from '../infra/log/kafka/log.ts'
import { openPostgresLog } from '../infra/log/postgres/log.ts'
import { createPool } from '../infra/postgres/pool.ts'
import { createLogger } from '../infra/telemetry.ts'

// What a server could do at best: fastify with one append through the same adapter, or with one read by primary
// key, and nothing else. Run as a process of its own, measured beside Tidegate.
const config = readConfig(process.env)
const url = config.DATABASE_URL
if (!url) throw new Error('DATABASE_URL is not set')
const logger = createLogger('warn')
const pool = createPool({ url, max: 20 })
const topic = 'bench.floor.v1'
const log =
  config.KAFKA_BROKERS.length > 0
    ? await openKafkaLog({ brokers: config.KAFKA_BROKERS, topicPrefix: config.KAFKA_TOPIC_PREFIX, logger })
    : await openPostgresLog({ pool, url, logger })
await log.ensureTopics([{ topic, partitions: config.TOPIC_PARTITIONS }])

const app = fastify()
app.removeAllContentTypeParsers()
app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))

app.post<{ Params: { key: string }; Body: Buffer }>('/append/:key', async ({ params, body }) => {
  await log.append([{ topic, key: params.key, value: body, headers: { type: 'Floor' } }])
  return { ack: true }
})

app.get<{ Params: { id: string } }>('/read/:id', async ({ params }, reply) => {
  const query = { name: 'read', text: 'select body from bench.details where id = $1', values: [params.id] }
  const { rows } = await pool.query<{ body: string }>(query)
  return reply.type('application/json').send(rows[0]?.body ?? '{}')
})

console.log(`Floor is ready: ${await app.listen({ port: 0, host: '127.0.0.1' })}`)
process.once('SIGTERM', async () => {
  await app.close()
  await log.close()
  await pool.end()
})

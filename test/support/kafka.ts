import { pino } from 'pino'
import { createKafkaClient } from '../../infra/log/kafka/client.ts'
import { eventually } from './eventually.ts'

/** Waits until the broker answers. */
export async function kafkaIsUp(brokers: string): Promise<void> {
  const kafka = createKafkaClient({
    brokers: brokers.split(','),
    logger: pino({ level: 'silent' }),
    retries: 0,
  })
  await eventually(
    async () => {
      const admin = kafka.admin()
      try {
        await admin.connect()
        await admin.describeCluster()
      } finally {
        await admin.disconnect().catch(() => {})
      }
    },
    { timeoutMs: 60_000, intervalMs: 200 },
  )
}

import { pino } from 'pino'
import { createKafkaClient } from '../../infra/log/kafka/client.ts'
import { eventually } from './eventually.ts'

/** Rejects if the broker does not respond. */
export async function askBroker(brokers: string): Promise<void> {
  const options = { brokers: brokers.split(','), logger: pino({ level: 'silent' }), retries: 0 }
  const admin = createKafkaClient(options).admin()
  try {
    await admin.connect()
    await admin.describeCluster()
  } finally {
    await admin.disconnect().catch(() => {})
  }
}

/** Waits until the broker responds. */
export const kafkaIsUp = (brokers: string): Promise<void> =>
  eventually(() => askBroker(brokers), { timeoutMs: 60_000, intervalMs: 200 })

import type { Kafka } from 'kafkajs'
import type { Position } from '../port.ts'

export async function setGroupOffsets(
  kafka: Kafka,
  { group: groupId, topic, positions }: { group: string; topic: string; positions: Position[] },
): Promise<void> {
  const admin = kafka.admin()
  await admin.connect()
  try {
    const partitions = positions.map(({ partition, offset }) => ({
      partition,
      offset: String(offset),
    }))
    await admin.setOffsets({ groupId, topic, partitions })
  } finally {
    await admin.disconnect()
  }
}

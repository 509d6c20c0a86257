import type { Topic } from '../port.ts'

export interface TopicPartition {
  topic: Topic
  partition: number
}

/**
 * The partitions of a topic that fall to one of its group's members. Every member comes to the same split from
 * the same list of members, so nobody needs to lead.
 */
export function fairShare(partitions: number, members: number[], me: number): number[] {
  const order = [...new Set(members)].sort((a, b) => a - b)
  const place = order.indexOf(me)
  if (place < 0) return []
  return Array.from({ length: partitions }, (_, i) => i).filter((i) => i % order.length === place)
}

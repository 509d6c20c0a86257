import { z } from 'zod'
import { maxItems } from './schemas.ts'

const counted = z.looseObject({ items: z.array(z.unknown()) })

/** Units that a batch costs, read before it is validated: its number of items, at least 1 and at most 10; else 1. */
export function costOf(body: unknown): number {
  const { data } = counted.safeParse(body)
  return data ? Math.min(Math.max(data.items.length, 1), maxItems) : 1
}

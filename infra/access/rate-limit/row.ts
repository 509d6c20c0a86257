import { z } from 'zod'
import type { SharedBucket } from './shared.ts'

const until = z.number()
const bucketSchema = z.object({
  limit: z.number().positive(),
  total: z.number(),
  at: z.number(),
  leases: z.record(z.string(), z.object({ parts: z.number(), until })),
  reports: z.record(z.string(), z.object({ serial: z.number(), until })).default({}),
})

/** The bucket in a stored text; undefined when it is none. */
export function readBucket(text: string): SharedBucket | undefined {
  try {
    return bucketSchema.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

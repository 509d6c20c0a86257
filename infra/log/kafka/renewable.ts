import { LogUnavailable } from '../port.ts'

export interface RenewableOptions<T> {
  open: () => Promise<T>
  close: (client: T) => Promise<void>
  /** For opening and the work together, milliseconds. */
  timeoutMs: number
}

/**
 * A connected client that is opened on first use and thrown away after any failure. It matters for the idempotent
 * producer: kafkajs takes back the sequence numbers of a request that timed out, and the next records under them
 * would be confirmed as duplicates though they were never stored.
 */
export function createRenewable<T>({ open, close, timeoutMs }: RenewableOptions<T>) {
  let current: Promise<T> | undefined

  async function use<R>(work: (client: T) => Promise<R>): Promise<R> {
    current ??= open()
    const client = current
    try {
      return await within(client.then(work), timeoutMs)
    } catch (cause) {
      if (current === client) current = undefined
      client.then(close).catch(() => {})
      throw new LogUnavailable('Kafka did not confirm in time', { cause })
    }
  }

  return {
    use,
    async close(): Promise<void> {
      const client = await current?.catch(() => undefined)
      current = undefined
      if (client) await within(close(client), timeoutMs).catch(() => {})
    },
  }
}

export type Renewable<T> = ReturnType<typeof createRenewable<T>>

/** Rejects when `work` takes longer than `ms`. */
export async function within<R>(work: Promise<R>, ms: number): Promise<R> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

import { within } from '../../timing.ts'
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
    const working = client.then(work)
    try {
      return await within(working, timeoutMs)
    } catch (cause) {
      if (current === client) current = undefined
      const closeAgain = () => client.then(close).catch(() => {})
      void closeAgain()
      // A retry of kafkajs that is under way connects again.
      const settled = working.then(closeAgain, closeAgain)
      throw new LogUnavailable('Kafka did not confirm in time', { cause, settled })
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

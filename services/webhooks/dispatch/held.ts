/** The leases of this process. */
export interface HeldLeases {
  /** How many there are, those among them whose record is on the way included. */
  size(): number
  /** How many requests are being made. */
  sending(): number
  has(deliveryId: string): boolean
  ids(): string[]
  add(deliveryId: string): void
  /** The request has ended; false when the lease is not held any more. */
  endSending(deliveryId: string): boolean
  remove(deliveryId: string): void
  /** Those whose requests have ended, that are still held and that nobody has been told of. */
  ended(): string[]
  /** Their leases show that their requests have ended. */
  told(deliveryIds: string[]): void
  /** Ends holding those whose requests are still being made. */
  dropSending(): string[]
  /** Resolves when none is held. */
  empty(): Promise<void>
}

export function createHeld(): HeldLeases {
  const held = new Set<string>()
  const sending = new Set<string>()
  const ended = new Set<string>()
  let waiting: (() => void)[] = []

  function tellIfEmpty(): void {
    if (held.size > 0) return
    for (const resolve of waiting) resolve()
    waiting = []
  }

  return {
    size: () => held.size,
    sending: () => sending.size,
    has: (id) => held.has(id),
    ids: () => [...held],
    add(id) {
      held.add(id)
      sending.add(id)
    },
    endSending(id) {
      if (!sending.delete(id)) return false
      ended.add(id)
      return true
    },
    remove(id) {
      for (const set of [held, sending, ended]) set.delete(id)
      tellIfEmpty()
    },
    ended: () => [...ended],
    told(ids) {
      for (const id of ids) ended.delete(id)
    },
    dropSending() {
      const ids = [...sending]
      sending.clear()
      for (const id of ids) held.delete(id)
      tellIfEmpty()
      return ids
    },
    async empty() {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.push(resolve)
      tellIfEmpty()
      return promise
    },
  }
}

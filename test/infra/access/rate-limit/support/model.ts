/** The rule of the interface, one bucket and one place, in fractions of 1/60,000 so that nothing is rounded. */
export function createModel(limit: number, startedAt: number) {
  const one = 60_000n
  let capacity = BigInt(limit) * one
  let units = capacity
  let last = startedAt

  return {
    request(cost: number, newLimit: number, now: number) {
      const perMs = capacity / one
      units += perMs * BigInt(now - last)
      if (units > capacity) units = capacity
      last = now
      capacity = BigInt(newLimit) * one
      if (units > capacity) units = capacity
      if (units < -capacity) units = -capacity
      const price = BigInt(cost) * one
      const admitted = units >= price
      units -= price
      if (units < -capacity) units = -capacity
      return { admitted, remaining: units < 0n ? 0 : Number(units / one), limit: newLimit, cost }
    },
    /** Whether `cost` would be admitted at `now`, without asking for it. */
    wouldAdmit(cost: number, now: number): boolean {
      const later = units + (capacity / one) * BigInt(now - last)
      return (later > capacity ? capacity : later) >= BigInt(cost) * one
    },
  }
}

export interface SharesOptions {
  /** How many in all. */
  max: number
  /** How many of them for one name. */
  each: number
}

/** A number of places of which nobody gets so many that none is left for others. */
export interface Shares {
  /** Whether there was a place for the name; then it is taken until it is given back. */
  take(name: string): boolean
  giveBack(name: string): void
}

export function createShares({ max, each }: SharesOptions): Shares {
  const taken = new Map<string, number>()
  let inAll = 0

  function change(name: string, by: number): void {
    const count = (taken.get(name) ?? 0) + by
    if (count === 0) taken.delete(name)
    else taken.set(name, count)
    inAll += by
  }

  return {
    take(name) {
      if (inAll >= max || (taken.get(name) ?? 0) >= each) return false
      change(name, 1)
      return true
    },
    giveBack: (name) => change(name, -1),
  }
}

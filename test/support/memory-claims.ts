import { pino } from 'pino'
import { type Claim, type Claims, createClaims } from '../../services/collect/claims.ts'

export interface MemoryClaims {
  /** The claims of one more process on the same store. */
  open(): Claims
  /** How often a process wrote. */
  writes: number
  /** Bodies that a process decided on alone. */
  alone: number
  /** true: a write rejects. */
  setDown(down: boolean): void
}

/** Claims in a map, for unit tests. */
export function createMemoryClaims({ clock }: { clock?: () => number } = {}): MemoryClaims {
  const known = new Map<string, Claim>()
  let down = false

  async function write(claims: Claim[]): Promise<Claim[]> {
    memory.writes++
    if (down) throw new Error('the claims are down')
    return claims.map((claim) => {
      const before = known.get(claim.documentIdHash)
      const newest = before && before.seq >= claim.seq ? before : claim
      known.set(claim.documentIdHash, newest)
      return newest
    })
  }

  const memory: MemoryClaims = {
    writes: 0,
    alone: 0,
    open: () =>
      createClaims({
        store: { write },
        logger: pino({ level: 'silent' }),
        onAlone: () => memory.alone++,
        ...(clock ? { clock } : {}),
      }),
    setDown: (value) => {
      down = value
    },
  }
  return memory
}

import { unavailable } from '../../infra/errors/errors.ts'
import { type Claim, type Claims, createClaims } from '../../services/collect/claims.ts'

export interface MemoryClaims {
  /** Opens the claims of another process on the same store. */
  open(): Claims
  /** If true, writes reject. */
  setDown(down: boolean): void
}

/** Claims in a map, for unit tests. */
export function createMemoryClaims(): MemoryClaims {
  const known = new Map<string, Claim>()
  let down = false

  async function write(claims: Claim[]): Promise<Claim[]> {
    if (down) throw unavailable(new Error('the claims are down'))
    return claims.map((claim) => {
      const before = known.get(claim.documentIdHash)
      const newest = before && before.seq >= claim.seq ? before : claim
      known.set(claim.documentIdHash, newest)
      return newest
    })
  }

  return {
    open: () => createClaims({ write }),
    setDown: (value) => {
      down = value
    },
  }
}

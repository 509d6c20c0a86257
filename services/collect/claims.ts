import { LRUCache } from 'lru-cache'
import type { Clock } from '../../infra/ids.ts'
import { createGroupCommit } from '../../infra/log/group-commit.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { settlesWithin } from '../../infra/timing.ts'

/** That a body has a sequence number of its document. A later number takes the place of an earlier one. */
export interface Claim {
  documentIdHash: string
  /** When the document ends, epoch milliseconds: the same for all of its claims. */
  expiresAt: number
  seq: number
  bodyHash: string
  /** Epoch milliseconds. */
  receivedAt: number
}

export interface ClaimStore {
  /**
   * Writes each claim whose number is later than what its document has. Returns what the documents of the others have.
   * At most one claim of each document.
   */
  write(claims: Claim[]): Promise<Claim[]>
}

export interface Claims {
  /** The newest claim of the document, over all processes: this one, or one that was there before. Never rejects. */
  claim(claim: Claim): Promise<Claim>
}

/** Of each document the claim with the latest number; of two under one number the first. */
export function newestClaims(claims: readonly Claim[]): Claim[] {
  const newest = new Map<string, Claim>()
  for (const claim of claims) {
    const known = newest.get(claim.documentIdHash)
    if (!known || claim.seq > known.seq) newest.set(claim.documentIdHash, claim)
  }
  return [...newest.values()]
}

/** Whether the body has its number, and no later one is taken. */
export function isHeldBy(newest: Claim, { seq, bodyHash }: Claim): boolean {
  return newest.seq === seq && newest.bodyHash === bodyHash
}

export interface ClaimsOptions {
  store: ClaimStore
  logger: Logger
  /** A claim was decided without the store. */
  onAlone: () => void
  /** Milliseconds of which only differences matter. Default: a clock of the process that is never set. */
  clock?: Clock
  /** How long one write may take, milliseconds (default 2000). Appending to an embedded log may take 5 seconds. */
  answerWithinMs?: number
}

const maxTogether = 1000
/** As many as there are documents whose last body a process remembers. */
const maxUnwritten = 20_000

/**
 * Sequence numbers shared by all processes with the same store. Claims that come while one write is under way form the
 * next. While the store does not answer, the process lets its own bodies through (docs/architecture.md, Claims), and
 * writes their claims once it answers again.
 */
export function createClaims(options: ClaimsOptions): Claims {
  const { store, logger, onAlone, clock = () => performance.now(), answerWithinMs = 2000 } = options
  const outage = createOutage({ clock, logger })
  const unwritten = new LRUCache<string, Claim>({ max: maxUnwritten })
  const groups = createGroupCommit({ write, maxRecords: maxTogether })

  async function write(claims: Claim[]): Promise<Claim[]> {
    const late = unwritten.size > 0 ? [...unwritten.values()].slice(0, maxTogether) : []
    const given = newestClaims([...late, ...claims])
    const writing = store.write(given)
    if (!(await settlesWithin(writing, answerWithinMs)))
      throw new Error(`no answer within ${answerWithinMs} ms`)
    const newest = new Map([...given, ...(await writing)].map((claim) => [claim.documentIdHash, claim]))
    for (const claim of late)
      if (unwritten.peek(claim.documentIdHash) === claim) unwritten.delete(claim.documentIdHash)
    return claims.map((claim) => newest.get(claim.documentIdHash) ?? claim)
  }

  function alone(claim: Claim): Claim {
    onAlone()
    const [newest = claim] = newestClaims([unwritten.get(claim.documentIdHash) ?? claim, claim])
    unwritten.set(claim.documentIdHash, newest)
    return newest
  }

  return {
    async claim(claim) {
      if (!outage.mayAsk()) return alone(claim)
      try {
        const [newest = claim] = await groups.append([claim])
        outage.ended()
        return newest
      } catch (error) {
        outage.noticed(error)
        return alone(claim)
      }
    },
  }
}

const retryMs = 1000

/** Once the store failed, one claim a second finds out whether it is back, and no other waits for it. */
function createOutage({ clock, logger }: { clock: Clock; logger: Logger }) {
  let retryAt: number | undefined
  return {
    mayAsk(): boolean {
      if (retryAt === undefined) return true
      const now = clock()
      if (now < retryAt) return false
      retryAt = now + retryMs
      return true
    },
    noticed(err: unknown): void {
      if (retryAt === undefined)
        logger.warn({ err }, 'collect: claims are away, this process decides alone about sequence numbers')
      retryAt = clock() + retryMs
    },
    ended(): void {
      if (retryAt !== undefined) logger.info('collect: claims are back')
      retryAt = undefined
    },
  }
}

import { ApiError, unavailable } from '../../infra/errors/errors.ts'
import { createRowWaiter } from '../../infra/event-store/row-waiter.ts'
import type { Position } from '../../infra/log/port.ts'
import type { HandOffRequest } from './deps.ts'
import type { Tenant } from './sealed-ids.ts'
import { type HandOffDecision, tokenPayload } from './token-payload.ts'

export interface HandOffDeps {
  /** The decisions that are readable among the ids, in any order. */
  findDecisions: (decisionIds: string[]) => Promise<HandOffDecision[]>
  /** Calls back whenever the sessions read model has moved on; returns how to stop that. */
  onAdvance: (listener: (position: Position) => void) => () => void
  /** SHA-256 (lower-case hex) of every live secret key of the organization and environment. */
  recipientHashes: (tenant: Tenant) => Promise<string[]>
  seal: (options: { payload: unknown; secretHashes: string[] }) => string
  /** Milliseconds to wait for a decision (default 5000). */
  timeoutMs?: number
  /** Milliseconds between looks when nothing is heard of the read model (default 250). */
  pollMs?: number
}

export interface HandOff {
  /** Rejects with 409 where the organization has no live secret key in the environment. */
  checkRecipients(tenant: Tenant): Promise<void>
  /** The sealed token of a decision once it is readable; 503 when that takes too long, 409 without a secret key. */
  sealResult(request: HandOffRequest): Promise<string>
  close(): void
}

const maxRecipients = 256

export function createHandOff(deps: HandOffDeps): HandOff {
  const decisions = createDecisionWaiter(deps)
  async function recipientsOf(tenant: Tenant): Promise<string[]> {
    const secretHashes = await deps.recipientHashes(tenant)
    if (secretHashes.length === 0) throw noRecipient()
    return secretHashes
  }

  return {
    close: decisions.close,
    async checkRecipients(tenant) {
      await recipientsOf(tenant)
    },
    async sealResult(request) {
      const [decision, secretHashes] = await Promise.all([
        decisions.waitFor(request.decisionId),
        recipientsOf(request),
      ])
      return deps.seal({
        payload: tokenPayload(decision),
        secretHashes: secretHashes.slice(0, maxRecipients),
      })
    },
  }
}

function noRecipient(): ApiError {
  return new ApiError('request.conflict', {
    message: 'The organization has no secret key in this environment that could open the token.',
    details: { next_action: 'contact_support' },
  })
}

/** Waits for decisions with one query at a time for all of them, however many hand-offs are under way. */
function createDecisionWaiter({ findDecisions, onAdvance, timeoutMs: ms = 5000, pollMs }: HandOffDeps) {
  const late = async (decisionId: string): Promise<never> => {
    throw unavailable(new Error(`no decision ${decisionId} within ${ms} ms`))
  }
  const decisions = createRowWaiter<string, HandOffDecision>({
    onAdvance,
    pollMs,
    look: (ids, found) =>
      findDecisions(ids).then((rows) => {
        for (const decision of rows) found(decision.event_id, decision)
      }),
  })
  return {
    waitFor: (decisionId: string) => decisions.waitFor(decisionId, { ms, late: () => late(decisionId) }),
    close: decisions.close,
  }
}

import { createHash } from 'node:crypto'
import { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import { isId } from '../../../infra/ids.ts'
import { openToken } from '../../../infra/wire/sealed-token.ts'
import type { GateServiceDefinition } from '../../../schemas/events.ts'
import type { Proof } from '../sessions.ts'

// The claims of services/collect/hand-off.ts that are checked here.
const claimsSchema = z.object({
  session_id: z.string().refine((id) => isId('sid', id)),
  decision: z.object({
    event_id: z.string().refine((id) => isId('evt', id)),
    verdict: z.enum(['bot', 'human', 'inconclusive']),
    risk_score: z.int().min(0).max(100),
    evaluated_at: z.iso.datetime(),
  }),
  request: z.object({ url: z.string() }),
  hand_off: z
    .object({
      challenge_answered: z.boolean(),
      input_observed: z.boolean(),
      binding: z.string().nullable(),
    })
    .nullish(),
})
type ProofClaims = z.output<typeof claimsSchema>

/** Decrypts the page's sealed token. Throws 403 `gate.svc_proof_invalid` if no secret (SHA-256, hex) opens it. */
export function openProof(sealedToken: string, secretHashes: string[]): ProofClaims {
  for (const secretHash of secretHashes) {
    const claims = claimsSchema.safeParse(tryOpen(sealedToken, secretHash))
    if (claims.success) return claims.data
  }
  throw new ApiError('gate.svc_proof_invalid')
}

function tryOpen(sealedToken: string, secretHash: string): unknown {
  try {
    return openToken(sealedToken, { secretHash })
  } catch {
    return undefined
  }
}

const maxAgeMs = 2 * 60 * 1000
const maxAheadMs = 30 * 1000

/**
 * Returns the proof. Throws `gate.bot_detected` for a bot, and `gate.svc_proof_invalid` for another page, session or
 * approve token, a proof that is too old or from the future, an unanswered challenge, and a page without input.
 */
export function checkProof(
  claims: ProofClaims,
  expected: { url: string; approveToken: string; sessionId?: string | undefined; now: number },
): Proof {
  const { url, approveToken, sessionId, now } = expected
  const { session_id, request, decision, hand_off } = claims
  const age = now - Date.parse(decision.evaluated_at)
  if (pageOf(request.url) !== pageOf(url)) throw invalid('The proof is of another page.')
  if (sessionId !== undefined && sessionId !== session_id)
    throw invalid('The proof is of another session.')
  if (age > maxAgeMs) throw invalid('The proof is older than two minutes.')
  if (age < -maxAheadMs) throw invalid('The proof is from the future.')
  const { verdict, risk_score: riskScore, event_id: decisionId } = decision
  if (verdict === 'bot') throw new ApiError('gate.bot_detected')
  if (!hand_off?.challenge_answered)
    throw invalid('The proof is of a page that did not answer its challenge.')
  if (!hand_off.input_observed) throw invalid('Nobody has used the page that the proof is of.')
  // The SDK sends the SHA-256 of the binding.
  if (hand_off.binding !== createHash('sha256').update(approveToken).digest('hex'))
    throw invalid('The proof was made for another approve token.')
  return { verdict, riskScore, sessionId: session_id, decisionId }
}

/** Throws 403 `gate.svc_proof_invalid` if the service requires the verdict `human` and the proof has another. */
export function requireMinimumVerdict(
  { verdict }: Proof,
  { minimum_verdict }: Pick<GateServiceDefinition, 'minimum_verdict'>,
): void {
  if (minimum_verdict !== 'human' || verdict === 'human') return
  const fields = [{ name: 'verdict', issue: 'too_low', received: verdict, expected: 'human' }]
  const message =
    'This service accepts approvals only from browsers that are clearly used by a person.'
  throw new ApiError('gate.svc_proof_invalid', { message, details: { fields } })
}

const invalid = (message: string) => new ApiError('gate.svc_proof_invalid', { message })

// Ignores query and fragment, which mail clients and messengers add to links.
function pageOf(address: string): string | undefined {
  const url = URL.parse(address)
  return url ? url.origin + url.pathname : undefined
}

import { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import { isId } from '../../../infra/ids.ts'
import { openToken } from '../../../infra/wire/sealed-token.ts'

/** The decision about the browser that approves. */
export interface Proof {
  verdict: 'human' | 'inconclusive'
  /** 0-100. */
  riskScore: number
  /** Of the consent page's own session. */
  sessionId: string
  decisionId: string
}

/** What services/collect/token-payload.ts writes, as far as it matters here. */
const claimsSchema = z.object({
  session_id: z.string().refine((id) => isId('sid', id)),
  decision: z.object({
    event_id: z.string().refine((id) => isId('evt', id)),
    verdict: z.enum(['bot', 'human', 'inconclusive']),
    risk_score: z.int().min(0).max(100),
    evaluated_at: z.iso.datetime(),
  }),
  request: z.object({ url: z.string() }),
})
export type ProofClaims = z.output<typeof claimsSchema>

/** What the token says. ApiError gate.svc_proof_invalid when none of the secrets (their SHA-256, hex) opens it. */
export function openProof(sealedToken: string, secretHashes: string[]): ProofClaims {
  for (const secretHash of secretHashes) {
    const claims = claimsSchema.safeParse(opened(sealedToken, secretHash))
    if (claims.success) return claims.data
  }
  throw new ApiError('gate.svc_proof_invalid')
}

function opened(sealedToken: string, secretHash: string): unknown {
  try {
    return openToken(sealedToken, { secretHash })
  } catch {
    return undefined
  }
}

export interface ProofRules {
  /** Of the consent page of this Gate session, and of no other. */
  url: string
  /** What the request says the session is, where it does. */
  sessionId?: string | undefined
  /** Epoch milliseconds. */
  now: number
}

const maxAgeMs = 2 * 60 * 1000
/** The scoring process may have another clock. */
const maxAheadMs = 30 * 1000

/** ApiError: gate.svc_proof_invalid for the proof of another page, session or time; gate.bot_detected. */
export function checkProof(claims: ProofClaims, { url, sessionId, now }: ProofRules): Proof {
  const { session_id, request, decision } = claims
  const age = now - Date.parse(decision.evaluated_at)
  if (pageOf(request.url) !== pageOf(url)) throw invalid('The proof is of another page.')
  if (sessionId !== undefined && sessionId !== session_id) throw invalid('The proof is of another session.')
  if (age > maxAgeMs) throw invalid('The proof is older than two minutes.')
  if (age < -maxAheadMs) throw invalid('The proof is from the future.')
  const { verdict, risk_score: riskScore, event_id: decisionId } = decision
  if (verdict === 'bot') throw new ApiError('gate.bot_detected')
  return { verdict, riskScore, sessionId: session_id, decisionId }
}

const invalid = (message: string) => new ApiError('gate.svc_proof_invalid', { message })

/** Without query and fragment, which whatever opened the page may have added. */
function pageOf(address: string): string | undefined {
  const url = URL.parse(address)
  return url ? url.origin + url.pathname : undefined
}

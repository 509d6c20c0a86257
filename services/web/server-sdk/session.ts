/** Payload of a sealed token: the session at the time of its decision. Later versions of Tidegate may add members. */
export interface VerifiedSession {
  object: 'session_verification'
  session_id: string
  decision: {
    event_id: string
    verdict: 'human' | 'inconclusive' | 'bot'
    /** 0 (person) to 100 (bot). */
    risk_score: number
    phase: string
    is_provisional: boolean
    manipulation: { score: number; verdict: string } | null
    evaluation_duration_ms: number
    /** ISO 8601, UTC. */
    evaluated_at: string
  }
  request: {
    user_agent: string
    url: string
    screen_size: string | null
    is_touch_capable: boolean | null
    ip_address: string
  }
  visitor_fingerprint: {
    object: 'visitor_fingerprint'
    id: string
    /** 0 to 100. */
    confidence: number
    identified_at: string
  } | null
  /** Signals that indicate a bot. */
  signals: { id: string; category: string; confidence: string; score: number }[]
  /** Points by category. */
  score_breakdown: { categories: Record<string, number> }
  attribution: { bot: Attribution | null }
  /** The bot or agent that the session claims to be. Absent with servers before 0.1.0. */
  agent?: {
    status: 'none' | 'declared' | 'signed' | 'verified' | 'spoofed'
    provider: string | null
    product: string | null
    purpose: string | null
    method: string | null
    evidence: Record<string, unknown> | null
  }
  hand_off?: {
    /** True if the page answered the challenge of its document. */
    challenge_answered: boolean
    /** True if a key, pointer, finger or screen reader was used. */
    input_observed: boolean
    /** SHA-256 (hex) of the text that the page passed as `binding`; null if none. */
    binding: string | null
  }
}

interface Attribution {
  labels: { kind: string; value: string; [member: string]: unknown }[]
  behaviors: Record<string, unknown>[]
}

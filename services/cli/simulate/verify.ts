import { z } from 'zod'
import { parseJsonOrUndefined } from '../../../infra/text.ts'
import type { SimulatedActor } from './generate/bots.ts'
import type { HttpClient, HttpResponse } from './http.ts'
import { countError, type PacedRecording, sendRecorded } from './recorder.ts'

export interface SentSession {
  sessionId: string
  actor: SimulatedActor
}

export interface Verification {
  readable: number
  /** Ids of sessions that could not be read back with a final decision. */
  unreadable: string[]
  verdicts: Record<string, Record<string, number>>
  /** Number of sessions whose simulation-key proof the server accepted. */
  proven: number
}

export interface VerifyOptions extends PacedRecording {
  baseUrl: string
  secretKey: string
  http: HttpClient
  concurrency: number
}

const detailSchema = z.object({
  data: z.object({
    id: z.string(),
    decision: z.object({ automation_status: z.string(), decision_status: z.string() }),
    evidence: z.object({ sources: z.array(z.string()) }).nullish(),
  }),
})

/** Reads every session back over REST. Each must have a final decision, because the server acknowledged its hand-off. */
export async function verifySessions(
  sessions: SentSession[],
  options: VerifyOptions,
): Promise<Verification> {
  const verification: Verification = { readable: 0, unreadable: [], verdicts: {}, proven: 0 }
  const queue = sessions.values()
  const runWorker = async () => {
    for (const session of queue) await verifySession(session, options, verification)
  }
  await Promise.all(Array.from({ length: options.concurrency }, runWorker))
  return verification
}

async function verifySession(
  session: SentSession,
  options: VerifyOptions,
  verification: Verification,
): Promise<void> {
  const { recording } = options
  const verdict = verdictOf(session, await readSession(session, options))
  if (!verdict) {
    verification.unreadable.push(session.sessionId)
    countError(recording, 'readback', 'not_readable')
    return
  }
  const { status, isProven } = verdict
  verification.readable++
  if (isProven) verification.proven++
  // If the server scores this script as human without a proof, it would do so for any script.
  else if (status === 'human') countError(recording, 'readback', 'human_without_proof')
  const counts = verification.verdicts[session.actor] ?? {}
  verification.verdicts[session.actor] = { ...counts, [status]: (counts[status] ?? 0) + 1 }
}

// Returns undefined unless the response is this session with a final decision.
function verdictOf(session: SentSession, response: HttpResponse | undefined) {
  if (response?.status !== 200) return undefined
  const { data } = detailSchema.safeParse(parseJsonOrUndefined(response.body.toString())).data ?? {}
  if (data?.id !== session.sessionId || data.decision.decision_status !== 'final') return undefined
  const isProven = data.evidence?.sources.includes('simulated_answers') ?? false
  return { status: data.decision.automation_status, isProven }
}

function readSession(
  { sessionId }: SentSession,
  { baseUrl, secretKey, http, recording, pacer }: VerifyOptions,
) {
  const headers = { Authorization: `Bearer ${secretKey}` }
  const send = () => http.request(`${baseUrl}/v1/sessions/${sessionId}`, { method: 'GET', headers })
  return sendRecorded({ recording, pacer, endpoint: 'readback' }, send).catch(() => undefined)
}

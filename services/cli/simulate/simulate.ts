import { setTimeout as delay } from 'node:timers/promises'
import { CollectError } from '../../../infra/wire/collect/client.ts'
import type { SimulationKey } from '../../../infra/wire/collect/simulation.ts'
import type { ClientKeys } from './client-keys.ts'
import { simulatedAnswers } from './generate/answers.ts'
import { defaultMix, planSession, type TrafficMix } from './generate/plan.ts'
import { createHttpClient } from './http.ts'
import { createPacer, type PacerTime } from './pacer.ts'
import { type Acknowledgement, countError, createRecording, type Recording } from './recorder.ts'
import { createReport, type SimulationReport } from './report.ts'
import { type CreateAnswers, type SessionTarget, sendSession } from './session.ts'
import { type SentSession, verifySessions } from './verify.ts'

export interface SimulationOptions {
  baseUrl: string
  /** Keys of each client in the mix, all of one organization. */
  publishableKeys: ClientKeys
  /** Key of the server. Without it, no session is scored as human. */
  simulationKey?: SimulationKey | undefined
  /** Answers of the sessions to challenges. Default: a proof made with `simulationKey`, if set. */
  createAnswers?: CreateAnswers
  sessions: number
  concurrency: number
  rate?: number | undefined
  seed: string
  mix?: TrafficMix
  /** Secret key to read every session back with at the end. Default: sessions are not read back. */
  readbackKey?: string | undefined
  onAcknowledged?: ((acknowledgement: Acknowledgement) => void) | undefined
  onProgress?: (finished: number) => void
  signal?: AbortSignal
  pacerTime?: PacerTime
}

/**
 * Sends synthetic sessions through the collect protocol and returns a report. A failed session doesn't stop the run, and
 * requests stay within the rate limits of both keys.
 */
export async function simulate(options: SimulationOptions): Promise<SimulationReport> {
  const { baseUrl, publishableKeys, concurrency, seed, simulationKey } = options
  const { createAnswers = (_, opened) => simulatedAnswers(opened, simulationKey) } = options
  const http = createHttpClient({ connections: concurrency })
  const recording = createRecording(options.onAcknowledged)
  const publishable = createPacer(options.pacerTime)
  const secret = createPacer(options.pacerTime)
  const context = { baseUrl, http, recording }
  try {
    const start = performance.now()
    const target = { ...context, publishableKeys, pacer: publishable, createAnswers }
    const { sessions, ...counts } = await sendAll(target, options)
    const durationMs = performance.now() - start
    const verifyOptions = { ...context, pacer: secret, concurrency }
    const verification = options.readbackKey
      ? await verifySessions(sessions, { ...verifyOptions, secretKey: options.readbackKey })
      : null
    return createReport({
      seed,
      baseUrl,
      hasKey: simulationKey !== undefined,
      durationMs,
      recording,
      verification,
      counts: { completed: sessions.length, ...counts },
      waits: { publishable: publishable.waits(), secret: secret.waits() },
    })
  } finally {
    http.close()
  }
}

export function succeeded({ errors, failed, verification }: SimulationReport): boolean {
  return errors.length === 0 && failed === 0 && (verification?.unreadable.length ?? 0) === 0
}

async function sendAll(target: SessionTarget, options: SimulationOptions) {
  const { seed, mix = defaultMix, rate, signal } = options
  const sent = { sessions: [] as SentSession[], failed: 0, returning: 0 }
  const continuityTokens = new Map<number, string>()
  const indexes = Array(options.sessions).keys()
  const start = performance.now()

  async function sendNextSession(index: number): Promise<void> {
    const plan = planSession(seed, index, mix)
    const previous = continuityTokens.get(plan.visitor)
    const { sessionId, continuity } = await sendSession(plan, target, previous)
    if (continuity) continuityTokens.set(plan.visitor, continuity)
    if (previous) sent.returning++
    sent.sessions.push({ sessionId, actor: plan.actor })
  }

  async function runWorker(): Promise<void> {
    for (const index of indexes) {
      // Relative to the start of the run, so that slow responses don't lower the rate.
      if (rate) await delayUntil(start + (index * 1000) / rate, signal)
      if (signal?.aborted) return
      await sendNextSession(index).catch((error) => {
        sent.failed++
        countRejection(target.recording, error)
      })
      options.onProgress?.(sent.sessions.length + sent.failed)
    }
  }

  await Promise.all(Array.from({ length: options.concurrency }, runWorker))
  return sent
}

async function delayUntil(at: number, signal: AbortSignal | undefined): Promise<void> {
  const ms = at - performance.now()
  if (ms > 0) await delay(ms, undefined, signal ? { signal } : {}).catch(() => {})
}

// Failed requests are already counted by sendRecorded; this counts responses that the client rejected.
function countRejection(recording: Recording, error: unknown): void {
  if (!(error instanceof CollectError)) countError(recording, 'session', String(error))
  else if (error.status === 200) countError(recording, 'session', error.code)
}

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
import { type Answering, type SessionTarget, sendSession } from './session.ts'
import { type SentSession, verifySessions } from './verify.ts'

export interface SimulationOptions {
  baseUrl: string
  /** For each client of the mix, all of one organization. */
  publishableKeys: ClientKeys
  /** Without it, and to any server but its own, no session is human. */
  simulationKey?: SimulationKey | undefined
  /** What sessions answer, where a measure needs what browsers send. Default: the proof, if there is a key. */
  answers?: Answering
  sessions: number
  concurrency: number
  rate?: number | undefined
  seed: string
  mix?: TrafficMix
  /** The secret key with which every session is read back at the end; default: none is. */
  verifyWith?: string | undefined
  onAcknowledged?: ((acknowledgement: Acknowledgement) => void) | undefined
  onProgress?: (finished: number) => void
  signal?: AbortSignal
  pacerTime?: PacerTime
}

/**
 * Sends synthetic sessions through the collect protocol and reports what happened. A failed session does not stop it,
 * and it keeps to the rate limits of both keys' buckets.
 */
export async function simulate(options: SimulationOptions): Promise<SimulationReport> {
  const { baseUrl, publishableKeys, concurrency, seed, simulationKey } = options
  const { answers = (_, opened) => simulatedAnswers(opened, simulationKey) } = options
  const http = createHttpClient({ connections: concurrency })
  const recording = createRecording(options.onAcknowledged)
  const publishable = createPacer(options.pacerTime)
  const secret = createPacer(options.pacerTime)
  const shared = { baseUrl, http, recording }
  try {
    const start = performance.now()
    const target = { ...shared, publishableKeys, pacer: publishable, answers }
    const { sessions, ...sent } = await sendAll(target, options)
    const durationMs = performance.now() - start
    const reading = { ...shared, pacer: secret, concurrency }
    const verification = options.verifyWith
      ? await verifySessions(sessions, { ...reading, secretKey: options.verifyWith })
      : null
    return createReport({
      seed,
      baseUrl,
      hasKey: simulationKey !== undefined,
      durationMs,
      recording,
      verification,
      counts: { completed: sessions.length, ...sent },
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
  const continuity = new Map<number, string>()
  const indexes = Array(options.sessions).keys()
  const start = performance.now()

  async function sendOne(index: number): Promise<void> {
    const plan = planSession(seed, index, mix)
    const presented = continuity.get(plan.visitor)
    const finished = await sendSession(plan, target, presented)
    if (finished.continuity) continuity.set(plan.visitor, finished.continuity)
    if (presented) sent.returning++
    sent.sessions.push({ sessionId: finished.sessionId, actor: plan.actor })
  }

  async function work(): Promise<void> {
    for (const index of indexes) {
      // Counted from the start of the run, so that a slow answer now does not lower the rate later.
      if (rate) await until(start + (index * 1000) / rate, signal)
      if (signal?.aborted) return
      await sendOne(index).catch((error) => {
        sent.failed++
        noteRefusal(target.recording, error)
      })
      options.onProgress?.(sent.sessions.length + sent.failed)
    }
  }

  await Promise.all(Array.from({ length: options.concurrency }, work))
  return sent
}

async function until(at: number, signal: AbortSignal | undefined): Promise<void> {
  const ms = at - performance.now()
  if (ms > 0) await delay(ms, undefined, signal ? { signal } : {}).catch(() => {})
}

// A failed request is noted where it was sent; here it is an answer that the client did not accept.
function noteRefusal(recording: Recording, error: unknown): void {
  if (!(error instanceof CollectError)) countError(recording, 'session', String(error))
  else if (error.status === 200) countError(recording, 'session', error.code)
}

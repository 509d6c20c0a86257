import { setTimeout as delay } from 'node:timers/promises'
import type { GateSessionId } from '../../../infra/ids.ts'
import { runPeriodically } from '../../../infra/periodic.ts'
import { within } from '../../../infra/within.ts'
import type { GateSessionRow } from '../../../projections/gate/rows.ts'
import { findGateSession, startedApprovals } from '../../../projections/gate/session-queries.ts'
import type { GateParts } from '../context.ts'
import type { Wait } from './ask-service.ts'
import { concludeApproval } from './conclude.ts'
import { createLeases } from './leases.ts'
import { createOutcomes } from './outcomes.ts'

export interface ApprovalsOptions extends Omit<GateParts, 'approvals'> {
  wait?: Wait
  /** Milliseconds between looks for approvals that nobody works on (default 2000). */
  lookEveryMs?: number
}

/** The approvals of signups that have started and not ended, in whichever process they started. */
export interface Approvals {
  /** Works on the approval from now on, unless somebody does already. */
  drive(gateSessionId: GateSessionId): void
  /** The session once it is not pending any more, or as it is after so many milliseconds. */
  outcome(gateSessionId: GateSessionId, ms: number): Promise<GateSessionRow | undefined>
  /** Leaves what cannot be ended at once to other processes. */
  stop(): Promise<void>
}

const noWait: Wait = async (ms, signal) => delay(Math.max(0, ms), undefined, { signal })
/** For an answer that is on its way when the process stops. */
const stopWithinMs = 1500

export function startApprovals(options: ApprovalsOptions): Approvals {
  const { pool, applied, random, leaseMs, logger, wait = noWait, lookEveryMs = 2000 } = options
  const leases = createLeases({ pool, leaseMs, holder: random(12).toString('hex') })
  const outcomes = createOutcomes({
    find: (id) => findGateSession(pool, id),
    onAdvance: (listener) => applied.onAdvance('gate', listener),
  })
  const running = new Map<GateSessionId, Promise<void>>()
  const stopping = new AbortController()

  /** Works until the end, if nobody else does. */
  async function work(gateSessionId: GateSessionId): Promise<void> {
    if (!(await leases.take(gateSessionId))) return
    const lost = new AbortController()
    const signal = AbortSignal.any([stopping.signal, lost.signal])
    const renewing = setInterval(() => void renew(gateSessionId, lost), leaseMs / 3)
    try {
      await concludeApproval({ ...options, wait }, { gateSessionId, signal })
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      clearInterval(renewing)
      await leases.release(gateSessionId).catch(() => {})
    }
  }

  async function renew(gateSessionId: GateSessionId, lost: AbortController): Promise<void> {
    // A database that does not answer gives the lease to nobody else.
    const isOurs = await leases.renew(gateSessionId).catch(() => true)
    if (!isOurs) lost.abort()
  }

  function drive(gateSessionId: GateSessionId): void {
    if (stopping.signal.aborted || running.has(gateSessionId)) return
    const done = work(gateSessionId)
      .catch((err) => logger.warn({ err, gateSessionId }, 'an approval did not go on, trying again'))
      .finally(() => running.delete(gateSessionId))
    running.set(gateSessionId, done)
  }

  const looking = runPeriodically({
    intervalMs: lookEveryMs,
    async look() {
      for (const id of await leases.free(await startedApprovals(pool))) drive(id)
      return false
    },
    onError: (err) => logger.warn({ err }, 'no look for started approvals, trying again'),
  })

  return {
    drive,
    outcome: outcomes.waitFor,
    async stop() {
      stopping.abort()
      await looking.stop()
      await within(Promise.all(running.values()), stopWithinMs).catch(() => {})
      await leases.releaseAll().catch(() => {})
      outcomes.close()
    },
  }
}

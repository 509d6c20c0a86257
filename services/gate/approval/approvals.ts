import { setTimeout as delay } from 'node:timers/promises'
import type { GateSessionId } from '../../../infra/ids.ts'
import { runPeriodically, within } from '../../../infra/timing.ts'
import { findGateSession, startedApprovals } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateParts } from '../context.ts'
import type { Wait } from './ask-service.ts'
import { concludeApproval } from './conclude.ts'
import { createLeases } from './leases.ts'
import { createOutcomes } from './outcomes.ts'
import { createShares, type SharesOptions } from './shares.ts'

export interface ApprovalsOptions extends Omit<GateParts, 'approvals'> {
  wait?: Wait
  /** Milliseconds between looks for approvals that nobody works on (default 2000). */
  lookEveryMs?: number
  /**
   * How many approvals that no request asks for this process works on at once, in all and for each organization: one
   * whose services do not answer holds up its own alone (default 64 and 16).
   */
  background?: SharesOptions
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
  const { background = { max: 64, each: 16 } } = options
  const leases = createLeases({ pool, leaseMs, holder: random(12).toString('hex') })
  const outcomes = createOutcomes({
    find: (id) => findGateSession(pool, id),
    onAdvance: (listener) => applied.onAdvance('gate', listener),
  })
  const shares = createShares(background)
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

  async function start(gateSessionId: GateSessionId): Promise<void> {
    const done = work(gateSessionId)
      .catch((err) => logger.warn({ err, gateSessionId }, 'an approval did not go on, trying again'))
      .finally(() => running.delete(gateSessionId))
    running.set(gateSessionId, done)
    await done
  }

  const isLeftAlone = (id: GateSessionId) => !stopping.signal.aborted && !running.has(id)

  /** What another process has left, if there is a place for it; the rest is for others, or for later. */
  function driveInBackground({ id, organization_id }: Pick<GateSessionRow, 'id' | 'organization_id'>): void {
    const name = organization_id ?? 'this server'
    if (isLeftAlone(id) && shares.take(name)) void start(id).finally(() => shares.giveBack(name))
  }

  const looking = runPeriodically({
    intervalMs: lookEveryMs,
    async look() {
      const { max, each } = background
      // Twice as many: those of organizations that have no place left here are among them.
      const free = await startedApprovals(pool, { each, limit: 2 * max })
      for (const session of free) driveInBackground(session)
      return false
    },
    onError: (err) => logger.warn({ err }, 'no look for started approvals, trying again'),
  })

  return {
    drive(gateSessionId) {
      if (isLeftAlone(gateSessionId)) void start(gateSessionId)
    },
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

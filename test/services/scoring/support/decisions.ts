import { noNetwork } from '../../../../infra/ip/network.ts'
import type { Position } from '../../../../infra/log/port.ts'
import { openPostgresLog } from '../../../../infra/log/postgres/log.ts'
import { repeatsProjection } from '../../../../projections/repeats/projection.ts'
import { sessionsProjection } from '../../../../projections/sessions/projection.ts'
import type { SessionScored } from '../../../../schemas/events.ts'
import type { SessionEvent } from '../../../../services/scoring/session/state.ts'
import { runScoring } from '../../../../services/scoring/worker.ts'
import { eventually } from '../../../support/eventually.ts'
import { createMemoryDataKeys } from '../../../support/memory-data-keys.ts'
import { noSkips } from '../../../support/no-skips.ts'
import { openProjectionWorld, silent } from '../../../support/projections.ts'
import {
  batch,
  handOff,
  metaOf,
  opened,
  scoringTopics,
  startedAt,
  type TestSession,
} from './events.ts'
import { taught } from './taught.ts'

interface Sent {
  behavior?: object | undefined
  /** When it hands off; default: a second after its opening. */
  at?: number
}

export interface Decisions {
  /** The decision about the hand-off, once both read models show it. */
  decided(session: TestSession, sent?: Sent): Promise<SessionScored>
  close(): Promise<void>
}

/** Scoring on a real database, of a deployment that is taught. */
export async function openDecisions({ learned = taught } = {}): Promise<Decisions> {
  const world = await openProjectionWorld()
  const { pool, url } = world.database
  const log = await openPostgresLog({ pool, url, logger: silent })
  await log.ensureTopics(scoringTopics)
  const applied = await world.openApplied()
  for (const projection of [sessionsProjection, repeatsProjection])
    await world.run(log, projection, { applied })
  const { codec } = world
  const dataKeys = createMemoryDataKeys()
  const about = {
    log,
    pool,
    codec,
    dataKeys,
    applied,
    network: noNetwork,
    logger: silent,
    skips: noSkips,
  }
  const scoring = await runScoring({ ...about, learned, clock: () => startedAt })

  const append = (...events: SessionEvent[]): Promise<Position[]> =>
    log.append(events.map((event) => codec.toRecord(event, metaOf(event))))

  return {
    async decided(session, { behavior, at = session.openedAt + 1000 } = {}) {
      const observations = { version: 1, elapsed_ms: 900, behavior }
      const request = handOff(session, { observations, at })
      await append(...opened(session), batch(session, { at: session.openedAt + 200 }), request)
      const text = 'select event from read.decisions where event_id = $1'
      const value = await eventually(async () => {
        const { rows } = await pool.query<{ event: Buffer }>(text, [request.data.decision_id])
        if (!rows[0]) throw new Error('it is not decided')
        return rows[0].event
      })
      const ends = (await log.endPositions('tidegate.sessions.v1')).filter(
        ({ offset }) => offset > 0,
      )
      await applied.waitFor(
        'repeats',
        ends.map((end) => ({ ...end, offset: end.offset - 1 })),
      )
      const event = codec.decode(value)
      if (event.type !== 'SessionScored') throw new Error(event.type)
      return event.data
    },
    async close() {
      await scoring.stop()
      await log.close()
      await world.close()
    },
  }
}

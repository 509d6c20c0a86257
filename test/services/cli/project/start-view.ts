import type pg from 'pg'
import { migrateHome } from '../../../../infra/event-store/builds.ts'
import type { EventCodec } from '../../../../infra/event-store/codec.ts'
import { runProjection } from '../../../../infra/event-store/runner.ts'
import type { EventLog, Position } from '../../../../infra/log/port.ts'
import { projectionOf } from '../../../../services/cli/project/projection.ts'
import { withRecordErrors } from '../../../../services/cli/project/record-errors.ts'
import type { View } from '../../../../services/cli/project/view.ts'
import { noSkips } from '../../../support/no-skips.ts'
import { silent } from '../../../support/projections.ts'

/** Fills the view as `tidegate project` does. `stops` collects the records at which it stops, with their errors. */
export async function startView(
  { pool, log, codec }: { pool: pg.Pool; log: EventLog; codec: EventCodec },
  view: View,
) {
  const projection = projectionOf(view, 'view.ts')
  const stops: { at: Position; error: unknown }[] = []
  await migrateHome(pool, projection)
  const onStopped = (at: Position, error: unknown) => void stops.push({ at, error })
  const running = await runProjection({
    projection,
    log,
    pool,
    codec: withRecordErrors(codec),
    logger: silent,
    skips: noSkips,
    onStopped,
    applied: { reportCommit: () => {}, onAdvance: () => () => {} },
  })
  return { projection, running, stops }
}

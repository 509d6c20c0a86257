import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Projection } from '../../infra/event-store/projection.ts'
import { countText } from '../../infra/text.ts'
import type { Core } from '../server/dependencies.ts'
import { withCore } from './operator/run.ts'
import { tableOf } from './tables.ts'

export function defineRestore(command: Command): void {
  command.option('--json', 'print the report as JSON', false).action(run)
}

// Can be repeated: reads only the records that a read model does not have yet.
async function run({ json }: { json: boolean }): Promise<void> {
  const report = await withCore(async (core) => {
    const { checkMasterKeys } = await import('../server/master-keys.ts')
    const { projections } = await import('../server/dependencies.ts')
    const { restoreVisitors } = await import('../scoring/restore.ts')
    const readModels = []
    for (const projection of projections) readModels.push(await catchUp(core, projection))
    await checkMasterKeys(core)
    return { readModels, scoring: await restoreVisitors(core) }
  }, logTakeover)
  if (json) return console.log(JSON.stringify(report))
  const { readModels, scoring } = report
  const table = tableOf(readModels, {
    'read model': ({ name }) => name,
    'records read': ({ records }) => records,
  })
  const visitors = scoring
    ? `Scoring restored ${countText(scoring.visitors, 'visitor')} from ${countText(scoring.sessions, 'session')}.`
    : 'Scoring already had visitors and kept them; see "tidegate rebuild scoring".'
  console.log(`${table}\n${visitors}\nYou can start the servers now.`)
}

// The lost database still holds the claim on the log.
const logTakeover = { logClaim: { takeOver: true } }

// Applies all records that are in the log now.
async function catchUp(core: Core, projection: Projection) {
  const { runProjection } = await import('../../infra/event-store/runner.ts')
  const { findUnapplied, lastPositions } = await import('../../infra/event-store/catch-up.ts')
  const ends = (
    await Promise.all(projection.topics.map((topic) => core.log.endPositions(topic)))
  ).flat()
  const running = await runProjection({ ...core, projection })
  try {
    let unapplied = lastPositions(ends)
    while (unapplied.length > 0) {
      const stopped = running.status().find((partition) => partition.stopped)
      if (stopped)
        throw new Error(`${stopped.topic}/${stopped.partition} is stuck: ${stopped.stopped}`)
      await delay(pollMs)
      unapplied = await findUnapplied(core.pool, projection.name, unapplied)
    }
  } finally {
    await running.stop()
  }
  return { name: projection.name, records: ends.reduce((sum, { offset }) => sum + offset, 0) }
}

const pollMs = 100

import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Projection } from '../../infra/event-store/projection.ts'
import type { Core } from '../server/dependencies.ts'
import { withCore } from './operator/operate.ts'
import { tableOf } from './tables.ts'

export function defineRestore(command: Command): void {
  command.option('--json', 'print the report as JSON', false).action(run)
}

// Can be repeated: what is filled already is brought up to date.
async function run({ json }: { json: boolean }): Promise<void> {
  const report = await withCore(async (core) => {
    const { checkMasterKeys } = await import('../server/master-keys.ts')
    const { projections } = await import('../server/dependencies.ts')
    const { restoreVisitors } = await import('../scoring/restore.ts')
    const readModels = []
    for (const projection of projections) readModels.push(await fill(core, projection))
    await checkMasterKeys(core)
    return { readModels, scoring: await restoreVisitors(core) }
  }, takingOver)
  if (json) return console.log(JSON.stringify(report))
  const { readModels, scoring } = report
  const table = tableOf(readModels, {
    'read model': ({ name }) => name,
    'records of its topics': ({ records }) => records,
  })
  const visitors = scoring
    ? `Scoring knows ${scoring.visitors} visitors of ${scoring.sessions} sessions.`
    : 'Scoring had begun before: its visitors are as they were (see "tidegate rebuild scoring").'
  console.log(`${table}\n${visitors}\nServers may start.`)
}

// The log was of the database that is lost.
const takingOver = { holdsLog: { takeOver: true } }

// Applies what is on the log at the call.
async function fill(core: Core, projection: Projection) {
  const { runProjection } = await import('../../infra/event-store/runner.ts')
  const { notApplied, lastBefore } = await import('../../infra/event-store/catch-up.ts')
  const ends = (
    await Promise.all(projection.topics.map((topic) => core.log.endPositions(topic)))
  ).flat()
  const running = await runProjection({ ...core, projection })
  try {
    let left = lastBefore(ends)
    while (left.length > 0) {
      const stopped = running.status().find((partition) => partition.stopped)
      if (stopped)
        throw new Error(`${stopped.topic}/${stopped.partition} stands still: ${stopped.stopped}`)
      await delay(pollMs)
      left = await notApplied(core.pool, projection.name, left)
    }
  } finally {
    await running.stop()
  }
  return { name: projection.name, records: ends.reduce((sum, { offset }) => sum + offset, 0) }
}

const pollMs = 100

import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Projection } from '../../infra/event-store/projection.ts'
import type { Core } from '../server/dependencies.ts'
import { withCore } from './operator/operate.ts'
import { textTable } from './tables.ts'

export function defineRestore(command: Command): void {
  command.option('--json', 'print the report as JSON', false).action(run)
}

// Can be repeated: what is filled already is brought up to date.
async function run({ json }: { json: boolean }): Promise<void> {
  const report = await withCore(async (core) => {
    const { projections } = await import('../server/dependencies.ts')
    const { restoreVisitors } = await import('../scoring/restore.ts')
    const readModels = []
    for (const projection of projections) readModels.push(await fill(core, projection))
    return { readModels, scoring: await restoreVisitors(core) }
  })
  if (json) console.log(JSON.stringify(report))
  else console.log(textOf(report))
}

interface Filled {
  name: string
  records: number
}

// Applies what is on the log at the call.
async function fill(core: Core, projection: Projection): Promise<Filled> {
  const { runProjection } = await import('../../infra/event-store/runner.ts')
  const { notApplied, lastBefore } = await import('../../infra/event-store/catch-up.ts')
  const found = await Promise.all(projection.topics.map((topic) => core.log.endPositions(topic)))
  const ends = found.flat()
  const running = await runProjection({ ...core, projection })
  try {
    let left = lastBefore(ends)
    while (left.length > 0) {
      const halted = running.status().find((partition) => partition.halted)
      if (halted) throw new Error(`${halted.topic}/${halted.partition} stands still: ${halted.halted}`)
      await delay(lookEveryMs)
      left = await notApplied(core.pool, projection.name, left)
    }
  } finally {
    await running.stop()
  }
  return { name: projection.name, records: ends.reduce((sum, { offset }) => sum + offset, 0) }
}

const lookEveryMs = 100

interface Report {
  readModels: Filled[]
  scoring: { visitors: number; sessions: number } | undefined
}

function textOf({ readModels, scoring }: Report): string {
  const table = textTable(
    ['read model', 'records of its topics'],
    readModels.map(({ name, records }) => [name, records]),
  )
  const visitors = scoring
    ? `Scoring knows ${scoring.visitors} visitors of ${scoring.sessions} sessions.`
    : 'Scoring had begun before: its visitors are as they were (see "tidegate rebuild scoring").'
  return `${table}\n${visitors}\nServers may start.`
}

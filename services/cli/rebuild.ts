import type { Command } from 'commander'
import type pg from 'pg'
import { liveBuild } from '../../infra/event-store/builds.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { type RebuildReport, rebuild } from '../../infra/event-store/rebuild.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { type CoreOptions, openCore, projections } from '../server/dependencies.ts'
import { withCore } from './operator/operate.ts'
import { textTable } from './tables.ts'

export function registerRebuild(program: Command): void {
  const names = projections.map((projection) => projection.name).join(', ')
  program
    .command('rebuild')
    .description('Build a read model anew beside the live one, compare the two, then switch')
    .argument('<projection>', `one of ${names}`)
    .option('--accept-differences', 'switch although the new build differs (its handlers changed)', false)
    .option('--json', 'print the report as JSON', false)
    .action(async (name: string, options: { acceptDifferences: boolean; json: boolean }) => {
      const projection = projections.find((known) => known.name === name)
      if (!projection) throw new Error(`no projection ${name}: one of ${names}`)
      const report = await withCore(({ log, pool, codec, logger }) =>
        rebuild({ projection, log, pool, codec, logger, acceptDifferences: options.acceptDifferences }),
      )
      if (options.json) console.log(JSON.stringify(report))
      else printReport(report)
      if (!report.switched) process.exitCode = 1
    })
}

function printReport({ events, seconds, tables, equal, switched }: RebuildReport): void {
  console.log(`${events} events in ${seconds.toFixed(1)} s`)
  const rows = tables.map(({ table, rows, equal: same, differences }) => [
    ...[table, rows, same ? 'yes' : 'no', differences.length],
  ])
  console.log(textTable(['table', 'rows', 'equal', 'differences'], rows))
  console.log(equal ? 'The new build equals the live one.' : 'The new build differs from the live one.')
  console.log(switched ? 'Readers use the new build.' : 'Readers still use the old build.')
}

/**
 * Rebuilds every read model whose tables another version of the program made, as after an update. For development
 * only: it makes the start as long as the log is, and nothing may follow these read models meanwhile.
 */
export async function rebuildOutdated(options: CoreOptions): Promise<void> {
  const outdated = await findOutdated(options.databaseUrl)
  if (outdated.length === 0) return
  await using undo = new AsyncDisposableStack()
  const core = await openCore({ ...options, longQueries: true })
  undo.defer(core.close)
  for (const projection of outdated) {
    const { events, seconds } = await rebuild({ ...core, projection, acceptDifferences: true })
    const built = { projection: projection.name, version: projection.version, events, seconds }
    core.logger.info(built, 'a read model of another version was built anew')
  }
}

async function findOutdated(url: string): Promise<Projection[]> {
  const pool = createPool({ url, max: 1 })
  try {
    const versions = await Promise.all(projections.map(({ name }) => liveVersion(pool, name)))
    return projections.filter(({ version }, i) => versions[i] !== undefined && versions[i] !== version)
  } finally {
    await pool.end()
  }
}

async function liveVersion(pool: pg.Pool, projection: string): Promise<number | undefined> {
  const build = await liveBuild(pool, projection).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === undefinedTable) return undefined
    throw error
  })
  return build?.version
}

const undefinedTable = '42P01'

import type { Command } from 'commander'
import type { RebuildReport } from '../../infra/event-store/rebuild.ts'
import { withCore } from './operator/operate.ts'
import { progressBar, tellResume } from './progress.ts'
import { textTable } from './tables.ts'

interface Flags {
  acceptDifferences: boolean
  fromScratch: boolean
  json: boolean
}

export function defineRebuild(command: Command): void {
  command
    .argument(
      '<projection>',
      'organizations, policies, sessions, repeats, answers, gate, webhooks, erasures, corrections, audit, or scoring: its visitors',
    )
    .option(
      '--accept-differences',
      'switch although the new build differs (its handlers changed)',
      false,
    )
    .option(
      '--from-scratch',
      'drop what an unfinished rebuild has built, instead of going on with it',
      false,
    )
    .option('--json', 'print the report as JSON', false)
    .action(run)
}

async function run(name: string, { json, ...flags }: Flags): Promise<void> {
  if (name === 'scoring') return rebuildScoring({ json, ...flags })
  const { projections } = await import('../server/dependencies.ts')
  const { rebuild } = await import('../../infra/event-store/rebuild.ts')
  const { findEndedData } = await import('../../projections/policies/queries.ts')
  const names = [...projections.map((known) => known.name), 'scoring'].join(', ')
  const projection = projections.find((known) => known.name === name)
  if (!projection) throw new Error(`no projection ${name}: one of ${names}`)
  let bar: ReturnType<typeof progressBar> | undefined
  const onProgress = ({ events, total }: { events: number; total: number }) => {
    bar ??= progressBar(total)
    bar.reach(events)
  }
  const report = await withCore((core) =>
    rebuild({
      ...core,
      projection,
      ...flags,
      findEnded: findEndedData,
      onProgress,
      onResume: tellResume,
    }),
  ).finally(() => bar?.end())
  if (json) console.log(JSON.stringify(report))
  else printReport(report)
  if (!report.switched) process.exitCode = 1
}

async function rebuildScoring({ acceptDifferences, json }: Flags): Promise<void> {
  const { rebuildVisitors } = await import('../scoring/restore.ts')
  const report = await withCore((core) => rebuildVisitors(core, { acceptDifferences }))
  const { sessions, visitors, keys, differences, switched } = report
  const table = textTable(
    ['sessions', 'visitors', 'keys', 'differences'],
    [[sessions, visitors, keys, differences]],
  )
  const result = switched
    ? 'Scoring uses what was read.'
    : 'Scoring keeps what it had: see --accept-differences.'
  console.log(json ? JSON.stringify(report) : `${table}\n${result}`)
  if (!switched) process.exitCode = 1
}

function printReport({ events, seconds, phases, tables, equal, switched }: RebuildReport): void {
  const { load, index, compare } = phases
  const parts = [
    `loading ${load.toFixed(1)}`,
    `indexes ${index.toFixed(1)}`,
    `comparing ${compare.toFixed(1)}`,
  ]
  console.log(`${events} events in ${seconds.toFixed(1)} s: ${parts.join(', ')}`)
  const rows = tables.map((one) => [
    one.table,
    one.rows,
    one.equal ? 'yes' : 'no',
    one.differences.length,
  ])
  console.log(textTable(['table', 'rows', 'equal', 'differences'], rows))
  console.log(
    equal ? 'The new build equals the live one.' : 'The new build differs from the live one.',
  )
  console.log(switched ? 'Readers use the new build.' : 'Readers still use the old build.')
}

import { type Command, InvalidArgumentError, Option } from 'commander'
import type { RebuildReport } from '../../infra/event-store/rebuild.ts'
import { withCore } from './operator/operate.ts'
import { progressBar } from './progress.ts'
import { textTable } from './tables.ts'

interface Flags {
  acceptDifferences: boolean
  json: boolean
  workers?: number
  /** Set for the processes that a rebuild starts. */
  share?: string
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
      '--workers <n>',
      'processes that load it, each some of the partitions (default: by cores and records)',
      parseWorkers,
    )
    .addOption(new Option('--share <share>').hideHelp())
    .option('--json', 'print the report as JSON', false)
    .action(run)
}

function parseWorkers(value: string): number {
  if (/^[1-9][0-9]?$/.test(value)) return Number(value)
  throw new InvalidArgumentError(`--workers must be 1–99, got "${value}"`)
}

async function run(name: string, flags: Flags): Promise<void> {
  if (name === 'scoring') return rebuildScoring(flags)
  const { projections } = await import('../server/dependencies.ts')
  const { loadShare, rebuild } = await import('../../infra/event-store/rebuild.ts')
  const { findEndedData } = await import('../../projections/policies/queries.ts')
  const { endWithParent, loadInWorkers } = await import('./rebuild-workers.ts')
  const names = [...projections.map((known) => known.name), 'scoring'].join(', ')
  const projection = projections.find((known) => known.name === name)
  if (!projection) throw new Error(`no projection ${name}: one of ${names}`)
  if (flags.share !== undefined) {
    const [index = 0, of = 1] = flags.share.split('/').map(Number)
    endWithParent()
    return withCore((core) => loadShare({ ...core, projection }, { index, of }))
  }
  let bar: ReturnType<typeof progressBar> | undefined
  const onProgress = ({ records, total }: { records: number; total: number }) => {
    bar ??= progressBar(total)
    bar.reach(records)
  }
  const report = await withCore((core) =>
    rebuild({
      ...core,
      projection,
      acceptDifferences: flags.acceptDifferences,
      findEnded: findEndedData,
      loadBeside: (target) => loadInWorkers(name, target, flags.workers),
      onProgress,
    }),
  ).finally(() => bar?.end())
  if (flags.json) console.log(JSON.stringify(report))
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

function printReport({ records, seconds, phases, tables, equal, switched }: RebuildReport): void {
  const { load, index, compare } = phases
  const parts = [
    `loading ${load.toFixed(1)}`,
    `indexes ${index.toFixed(1)}`,
    `comparing ${compare.toFixed(1)}`,
  ]
  console.log(`${records} records in ${seconds.toFixed(1)} s: ${parts.join(', ')}`)
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

import { type Command, InvalidArgumentError, Option } from 'commander'
import type { RebuildReport } from '../../infra/event-store/rebuild.ts'
import { countText } from '../../infra/text.ts'
import { withCore } from './operator/run.ts'
import { progressBar } from './progress.ts'
import { textTable } from './tables.ts'

interface Flags {
  acceptDifferences: boolean
  json: boolean
  workers?: number
  /** Share of the partitions to load, as `index/count`. Set for worker processes that a rebuild starts. */
  share?: string
}

export function defineRebuild(command: Command): void {
  command
    .argument(
      '<projection>',
      'organizations, policies, sessions, repeats, answers, gate, webhooks, erasures, corrections, audit, or scoring (the visitors of scoring)',
    )
    .option(
      '--accept-differences',
      'switch even if the new build differs, for example because handlers changed',
      false,
    )
    .option(
      '--workers <n>',
      'number of loading processes, 1 to 99; they share the partitions (default: from cores and records)',
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
  const { loadPartitionShare, rebuild } = await import('../../infra/event-store/rebuild.ts')
  const { findRetentionCutoffs } = await import('../../projections/policies/queries.ts')
  const { exitWithParent, loadInWorkers } = await import('./rebuild-workers.ts')
  const names = [...projections.map((projection) => projection.name), 'scoring'].join(', ')
  const projection = projections.find((candidate) => candidate.name === name)
  if (!projection) throw new Error(`no projection "${name}": it must be one of ${names}`)
  if (flags.share !== undefined) {
    const [index = 0, count = 1] = flags.share.split('/').map(Number)
    exitWithParent()
    return withCore((core) => loadPartitionShare({ ...core, projection }, { index, count }))
  }
  let bar: ReturnType<typeof progressBar> | undefined
  const onProgress = ({ records, total }: { records: number; total: number }) => {
    bar ??= progressBar(total)
    bar.set(records)
  }
  const report = await withCore((core) =>
    rebuild({
      ...core,
      projection,
      acceptDifferences: flags.acceptDifferences,
      findCutoffs: findRetentionCutoffs,
      loadInOtherProcesses: (target) => loadInWorkers(name, target, flags.workers),
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
    ? 'Scoring now uses the new build.'
    : 'The new build differs, so scoring keeps the old one; see --accept-differences.'
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
  console.log(`${countText(records, 'record')} in ${seconds.toFixed(1)} s: ${parts.join(', ')}`)
  const rows = tables.map(({ table, rows, equal, differences }) => [
    table,
    rows,
    equal ? 'yes' : 'no',
    differences.length,
  ])
  console.log(textTable(['table', 'rows', 'equal', 'differences'], rows))
  console.log(
    equal ? 'The new build matches the live one.' : 'The new build differs from the live one.',
  )
  console.log(switched ? 'Readers now use the new build.' : 'Readers still use the old build.')
}

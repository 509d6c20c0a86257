import type { Command } from 'commander'
import { type RebuildReport, rebuild } from '../../infra/event-store/rebuild.ts'
import { projections } from '../server/dependencies.ts'
import { withCore } from './with-core.ts'

/** `tidegate rebuild <projection>`: builds a read model anew from offset 0, compares, switches. */
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
  console.table(tables)
  console.log(equal ? 'The new build equals the live one.' : 'The new build differs from the live one.')
  console.log(switched ? 'Readers use the new build.' : 'Readers still use the old build.')
}

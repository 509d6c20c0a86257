import type { Command } from 'commander'
import { instant, jsonFlag, since, wordOf } from '../arguments.ts'
import { printOutcome } from '../operator/operate.ts'
import { typed } from '../typed.ts'
import type { RescoreFlags } from './run.ts'

export function defineRescore(rescore: Command): void {
  rescore
    .option('--model <file>', 'the model to try; --print-model prints one to begin with')
    .option('--print-model', 'print the model that decides now, to edit it')
    .option('--since <time>', 'of the newest decisions: 7d, 24h or 2026-11-23T12:00:00Z (default: 7d)', since)
    .option('--until <time>', 'decisions before this time only (default: now)', instant)
    .option('--organization <organization>', 'only its sessions; its id or slug (default: all)')
    .option('--environment <environment>', 'live or test (default: both)', wordOf('live', 'test'))
    .option('--html <file>', 'also write the report as a page with plots')
    .option(...jsonFlag)
    .action((flags: RescoreFlags, command: Command) => {
      const problem = problemOf(flags)
      if (problem) command.error(`error: ${problem}`)
      return printOutcome(flags, async () => (await import('./run.ts')).runRescore(flags))
    })
}

function problemOf({ model, printModel }: RescoreFlags): string | undefined {
  if (model || printModel) return undefined
  return `--model is missing: "${typed('rescore', '--print-model')} > model.json" writes one to edit.`
}

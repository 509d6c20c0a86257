import type { Command } from 'commander'
import { instant, jsonFlag, since, wordOf } from '../arguments.ts'
import { printOutcome } from '../operator/operate.ts'
import { typed } from '../typed.ts'
import type { RescoreFlags } from './run.ts'

export function defineRescore(rescore: Command): void {
  rescore
    .option('--model <file>', 'the model to try; --print-model prints one to begin with')
    .option('--print-model', 'print the model that decides now, to edit it')
    .option(
      '--since <time>',
      'of the newest decisions: 7d, 24h, 2026-11-23 or 2026-11-23T12:00:00Z (default: 7d)',
      since,
    )
    .option('--until <time>', 'decisions before this time only (default: now)', since)
    .option('--organization <organization>', 'only its sessions; its id or slug (default: all)')
    .option('--everybody', 'all organizations that have no model of their own')
    .option('--environment <environment>', 'live or test (default: both)', wordOf('live', 'test'))
    .option('--html <file>', 'also write the report as a page with plots')
    .option('--switch', 'then make it the model of the organization or of everybody')
    .option('--back', 'return to the model before the newest change, without a rehearsal')
    .option(
      '--at <time>',
      'when it begins to decide (default: as soon as every server can know)',
      instant,
    )
    .option('--reason <text>', 'why, for the audit log')
    .option(...jsonFlag)
    .action((flags: RescoreFlags, command: Command) => {
      const [problem] = problemsOf(flags)
      if (problem) command.error(`error: ${problem}`)
      return printOutcome(flags, async () => (await import('./run.ts')).runRescore(flags))
    })
}

function problemsOf(flags: RescoreFlags): string[] {
  const { model, printModel, organization, everybody, back, reason, at } = flags
  const changes = flags.switch || back
  const rules: [boolean | undefined, string][] = [
    [flags.switch && back, '--switch and --back exclude each other.'],
    [organization !== undefined && everybody, '--organization and --everybody exclude each other.'],
    [back && model !== undefined, '--back takes no --model: it returns to the one before.'],
    [
      !back && !printModel && model === undefined,
      `--model is missing: "${typed('rescore', '--print-model')} > model.json" writes one to edit.`,
    ],
    [
      changes && organization === undefined && !everybody,
      'whose model? --organization names one, --everybody means all that have none of their own.',
    ],
    [changes && reason === undefined, '--reason is missing.'],
    [!changes && (reason ?? at) !== undefined, '--at and --reason are for --switch and --back.'],
  ]
  return rules.flatMap(([isBroken, problem]) => (isBroken ? [problem] : []))
}

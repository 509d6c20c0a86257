import type { Command } from 'commander'
import { choice, instant, jsonFlag, since } from '../arguments.ts'
import { commandLine } from '../command-line.ts'
import { printOutcome } from '../operator/run.ts'
import type { RescoreFlags } from './run.ts'

export function defineRescore(rescore: Command): void {
  rescore
    .option('--model <file>', 'model to try; start from the output of --print-model')
    .option('--print-model', 'print the current model as a starting point')
    .option(
      '--since <time>',
      'only sessions whose newest decision is at or after: 7d, 24h, 2026-11-23 or 2026-11-23T12:00:00Z (default: 7d)',
      since,
    )
    .option('--until <time>', 'only sessions whose newest decision is before (default: now)', since)
    .option('--organization <organization>', 'id or slug of the organization (default: all)')
    .option('--everybody', 'all organizations without their own model')
    .option('--environment <environment>', 'live or test (default: both)', choice('live', 'test'))
    .option('--html <file>', 'also write the report as an HTML page with charts')
    .option('--switch', 'then switch the organization, or everybody, to this model')
    .option('--back', 'return to the previous model, without a test run')
    .option(
      '--at <time>',
      'when the switch takes effect (default: as soon as all servers have the model)',
      instant,
    )
    .option('--reason <text>', 'reason for the audit log')
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
    [flags.switch && back, '--switch and --back cannot be combined.'],
    [organization !== undefined && everybody, '--organization and --everybody cannot be combined.'],
    [
      back && model !== undefined,
      '--back cannot be combined with --model: it returns to the previous model.',
    ],
    [
      !back && !printModel && model === undefined,
      `--model is missing: "${commandLine('rescore', '--print-model')} > model.json" writes one to start from.`,
    ],
    [
      changes && organization === undefined && !everybody,
      '--organization or --everybody is missing: --everybody means all organizations without their own model.',
    ],
    [changes && reason === undefined, '--reason is missing.'],
    [!changes && (reason ?? at) !== undefined, '--at and --reason need --switch or --back.'],
  ]
  return rules.flatMap(([isBroken, problem]) => (isBroken ? [problem] : []))
}

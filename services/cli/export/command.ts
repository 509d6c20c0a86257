import type { Command } from 'commander'
import { eventTopics } from '../../../schemas/events.ts'
import { eventType, jsonFlag, requireTypeOn, since, wordOf } from '../arguments.ts'
import { printOutcome } from '../operator/operate.ts'
import { exportFormats } from './file.ts'
import type { ExportFlags } from './run.ts'

export function defineExport(exporting: Command): void {
  const topics = [...new Set<string>(Object.values(eventTopics))]
  define(exporting.command('sessions'))
    .description('One row for each session that was decided then, as read.session_facts has it')
    .option('--open', 'also columns that organizations keep back, with the master keys', false)
    .action((flags: ExportFlags) => run('sessions', flags))
  define(exporting.command('events'))
    .description('The events of a topic that were recorded then')
    .requiredOption('--topic <name>', `one of ${topics.join(', ')}`, wordOf(...topics))
    .option('--type <name>', 'only events of this type, for example SessionScored', eventType)
    .option(
      '--open',
      'open what is encrypted, with the master keys; what was erased is marked',
      false,
    )
    .action((flags: ExportFlags) => {
      requireTypeOn(flags)
      return run('events', flags)
    })
}

function define(command: Command): Command {
  return command
    .requiredOption('--out <file>', 'a new file, such as sessions.parquet')
    .option(
      '--format <format>',
      `one of ${exportFormats.join(', ')} (default: the extension of the file)`,
      wordOf(...exportFormats),
    )
    .option(
      '--since <time>',
      '7d, 24h, 2026-11-23 or 2026-11-23T12:00:00Z (default: from the beginning)',
      since,
    )
    .option('--until <time>', 'before this time (default: now)', since)
    .option('--organization <organization>', 'only what is its; its id or slug (default: all)')
    .option('--environment <environment>', 'live or test (default: both)', wordOf('live', 'test'))
    .option(...jsonFlag)
}

const run = (what: 'sessions' | 'events', flags: ExportFlags): Promise<void> =>
  printOutcome(flags, async () => (await import('./run.ts')).runExport(what, flags))

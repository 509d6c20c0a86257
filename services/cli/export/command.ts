import type { Command } from 'commander'
import { eventTopics } from '../../../schemas/events.ts'
import { choice, eventType, jsonFlag, requireTypeOnTopic, since } from '../arguments.ts'
import { printOutcome } from '../operator/run.ts'
import { exportFormats } from './file.ts'
import type { ExportFlags } from './run.ts'

export function defineExport(exportCommand: Command): void {
  const topics = [...new Set<string>(Object.values(eventTopics))]
  addExportOptions(exportCommand.command('sessions'))
    .description('Export one row per scored session, with the columns of read.session_facts')
    .option('--open', 'include restricted columns (needs the master keys)', false)
    .action((flags: ExportFlags) => run('sessions', flags))
  addExportOptions(exportCommand.command('events'))
    .description('Export the events of a topic')
    .requiredOption('--topic <name>', `one of ${topics.join(', ')}`, choice(...topics))
    .option('--type <name>', 'only events of this type, for example SessionScored', eventType)
    .option('--open', 'decrypt personal data (needs the master keys); erased data is marked', false)
    .action((flags: ExportFlags) => {
      requireTypeOnTopic(flags)
      return run('events', flags)
    })
}

function addExportOptions(command: Command): Command {
  return command
    .requiredOption('--out <file>', 'new file to write, such as sessions.parquet')
    .option(
      '--format <format>',
      `one of ${exportFormats.join(', ')} (default: from the file extension)`,
      choice(...exportFormats),
    )
    .option(
      '--since <time>',
      'start time: 7d, 24h, 2026-11-23 or 2026-11-23T12:00:00Z (default: the beginning)',
      since,
    )
    .option('--until <time>', 'end time, exclusive (default: now)', since)
    .option('--organization <organization>', 'id or slug of the organization (default: all)')
    .option('--environment <environment>', 'live or test (default: both)', choice('live', 'test'))
    .option(...jsonFlag)
}

const run = (dataset: 'sessions' | 'events', flags: ExportFlags): Promise<void> =>
  printOutcome(flags, async () => (await import('./run.ts')).runExport(dataset, flags))

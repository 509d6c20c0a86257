import type { Command } from 'commander'
import { countText } from '../../infra/text.ts'
import { jsonFlag } from './arguments.ts'
import {
  type CommandOutcome,
  type OperatorOptions,
  printOutcome,
  withCore,
} from './operator/run.ts'
import { timeText } from './tables.ts'

export function defineDataKeys(command: Command): void {
  fileCommand(command, { name: 'backup', run: backUp }).description(
    'Write all keys to a new file, still encrypted with the master keys',
  )
  fileCommand(command, { name: 'restore', run: restore }).description(
    'Add the keys from a backup, except for sessions that already have a key or were erased',
  )
  command
    .command('reseal')
    .description('Reencrypt all keys with the first master key, so that you can remove older ones')
    .option(...jsonFlag)
    .action((options: OperatorOptions) => printOutcome(options, reseal))
}

function fileCommand(
  parent: Command,
  { name, run }: { name: string; run: (file: string) => Promise<CommandOutcome> },
): Command {
  return parent
    .command(name)
    .argument('<file>', 'path of the backup file')
    .option(...jsonFlag)
    .action((file: string, options: OperatorOptions) => printOutcome(options, () => run(file)))
}

async function backUp(file: string) {
  const { withStores } = await import('./operator/core.ts')
  const { backUpDataKeys } = await import('../../infra/event-store/data-key-backup.ts')
  const keys = await withStores(({ pool }) => backUpDataKeys(pool, { file, now: Date.now() }))
  const text = `Wrote ${countText(keys, 'key')} to ${file}. Delete it after ${backupDays} days: it can still decrypt data that is erased in the meantime.`
  return { data: { keys, file }, text }
}

// Maximum age of a backup (docs/guide/retention.md).
const backupDays = 30
const dayMs = 24 * 60 * 60 * 1000

async function restore(file: string) {
  const { restoreKeyBackup } = await import('../../infra/event-store/erasures.ts')
  const { checkMasterKeys } = await import('../server/master-keys.ts')
  return withCore(async (core) => {
    const {
      madeAt,
      rows,
      added,
      sessions: erased,
      erasedSince,
    } = await restoreKeyBackup(core, { file })
    await checkMasterKeys(core)
    const made_at = new Date(madeAt).toISOString()
    const data = { made_at, keys: rows, added, erased, erased_since: erasedSince }
    const text = `Added ${added} of ${countText(rows, 'key')} from ${timeText(madeAt)}. The log records ${countText(erased, 'erased session')}; their keys were not restored.`
    return { data, text: [text, ...warningsOf({ madeAt, erasedSince })].join(' ') }
  })
}

function warningsOf({ madeAt, erasedSince }: { madeAt: number; erasedSince: number }): string[] {
  return [
    ...(erasedSince > 0
      ? [
          `WARNING: ${countText(erasedSince, 'session')} ${erasedSince === 1 ? 'was' : 'were'} erased after this backup. Together with the master keys it can decrypt them in any copy of the log: delete the file and make a new backup.`,
        ]
      : []),
    ...(Date.now() - madeAt > backupDays * dayMs
      ? [`The backup is older than ${backupDays} days: delete it.`]
      : []),
  ]
}

async function reseal() {
  const { resealDataKeys } = await import('../../infra/event-store/data-key-backup.ts')
  const { writeCanary } = await import('../../infra/event-store/master-key-canary.ts')
  return withCore(async ({ pool, keyring, random }) => {
    const data = await resealDataKeys(pool, { keyring, random, now: Date.now() })
    await writeCanary(pool, { keyring, random, replaces: true })
    const undecryptable =
      data.closed > 0
        ? ` ${countText(data.closed, 'other key')} cannot be decrypted by any master key.`
        : ''
    return {
      data,
      text: `Reencrypted ${countText(data.resealed, 'key')} with the first master key.${undecryptable}`,
    }
  })
}

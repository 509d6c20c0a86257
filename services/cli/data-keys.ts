import type { Command } from 'commander'
import { jsonFlag } from './arguments.ts'
import {
  type CommandOutcome,
  type OperatorOptions,
  printOutcome,
  withCore,
} from './operator/operate.ts'
import { timeText } from './tables.ts'

export function defineDataKeys(command: Command): void {
  fileCommand(command, { name: 'backup', run: backUp }).description(
    'Write all keys to a new file, each as it is stored: sealed by a master key',
  )
  fileCommand(command, { name: 'restore', run: restore }).description(
    'Add the keys of a backup, but for sessions that have one or were erased',
  )
  command
    .command('reseal')
    .description('Seal all keys by the first master key, so that older ones can be taken away')
    .option(...jsonFlag)
    .action((options: OperatorOptions) => printOutcome(options, reseal))
}

function fileCommand(
  parent: Command,
  { name, run }: { name: string; run: (file: string) => Promise<CommandOutcome> },
): Command {
  return parent
    .command(name)
    .argument('<file>', 'its path')
    .option(...jsonFlag)
    .action((file: string, options: OperatorOptions) => printOutcome(options, () => run(file)))
}

async function backUp(file: string) {
  const { withStores } = await import('./operator/core.ts')
  const { backUpDataKeys } = await import('../../infra/event-store/data-key-backup.ts')
  const keys = await withStores(({ pool }) => backUpDataKeys(pool, { file, now: Date.now() }))
  const text = `${keys} keys are in ${file}. Delete it after ${backupDays} days: until then what was erased since can be opened with it.`
  return { data: { keys, file }, text }
}

// Backups may live this long (docs/guide/retention.md).
const backupDays = 30
const dayMs = 24 * 60 * 60 * 1000

async function restore(file: string) {
  const { restoreUnerased } = await import('../../infra/event-store/erased.ts')
  const { checkMasterKeys } = await import('../server/master-keys.ts')
  return withCore(async (core) => {
    const {
      madeAt,
      rows,
      added,
      sessions: erased,
      erasedSince,
    } = await restoreUnerased(core, { file })
    await checkMasterKeys(core)
    const made_at = new Date(madeAt).toISOString()
    const data = { made_at, keys: rows, added, erased, erased_since: erasedSince }
    const text = `${added} of ${rows} keys of ${timeText(madeAt)} were added. The log has ${erased} erased sessions, whose keys are gone.`
    return { data, text: [text, ...warningsOf({ madeAt, erasedSince })].join(' ') }
  })
}

function warningsOf({ madeAt, erasedSince }: { madeAt: number; erasedSince: number }): string[] {
  return [
    ...(erasedSince > 0
      ? [
          `WARNING: the file is older than erasures of ${erasedSince} sessions, and with the master keys it opens them wherever the log was copied to: delete it, and back up anew.`,
        ]
      : []),
    ...(Date.now() - madeAt > backupDays * dayMs
      ? [`It is older than ${backupDays} days: delete it.`]
      : []),
  ]
}

async function reseal() {
  const { resealDataKeys } = await import('../../infra/event-store/data-key-backup.ts')
  const { writeCanary } = await import('../../infra/event-store/master-key-canary.ts')
  return withCore(async ({ pool, keyring, random }) => {
    const data = await resealDataKeys(pool, { keyring, random, now: Date.now() })
    await writeCanary(pool, { keyring, random, replaces: true })
    const closed = data.closed > 0 ? ` No master key opens ${data.closed} others.` : ''
    return { data, text: `${data.resealed} keys were sealed by the first master key.${closed}` }
  })
}

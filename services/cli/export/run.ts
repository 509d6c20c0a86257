import path from 'node:path'
import { createSkips } from '../../../infra/event-store/skips.ts'
import { iso } from '../../../infra/iso.ts'
import { countText } from '../../../infra/text.ts'
import type { Environment } from '../../../schemas/events.ts'
import { withStores } from '../operator/core.ts'
import { type CommandOutcome, type OperatorOptions, requireOrganization } from '../operator/run.ts'
import { progressBar } from '../progress.ts'
import { eventColumns, sessionColumns } from './columns.ts'
import { writeEvents } from './events.ts'
import { type ExportFormat, exportFormats, writeExport } from './file.ts'
import type { ExportSelection, RowSink } from './selection.ts'
import { writeSessions } from './sessions.ts'

export interface ExportFlags extends OperatorOptions {
  out: string
  format?: ExportFormat
  open: boolean
  since?: number
  until?: number
  organization?: string
  environment?: Environment
  topic?: string
  type?: string
}

export function runExport(
  dataset: 'sessions' | 'events',
  flags: ExportFlags,
): Promise<CommandOutcome> {
  const { out: file, format = formatOf(file), topic = '', type = null } = flags
  if ((flags.since ?? 0) >= (flags.until ?? Infinity))
    throw new Error('--since must be earlier than --until')
  return withStores(
    async ({ pool, log, codec, logger }) => {
      const selection: ExportSelection = {
        since: flags.since ?? 0,
        until: flags.until ?? Date.now(),
        organizationId: flags.organization
          ? (await requireOrganization(pool, flags.organization)).id
          : null,
        environment: flags.environment ?? null,
        decrypts: flags.open,
      }
      let bar: ReturnType<typeof progressBar> | undefined
      const onProgress = (done: number, total: number) => {
        bar ??= progressBar(total)
        bar.set(done)
      }
      const fill = async (add: RowSink['add']) => {
        if (dataset === 'sessions') return writeSessions(pool, selection, { add, onProgress })
        const skips = createSkips({ log, codec, logger })
        await writeEvents(
          { log, codec, skips },
          { ...selection, topic, type },
          { add, onProgress },
        ).finally(skips.close)
      }
      const columns = dataset === 'sessions' ? sessionColumns() : eventColumns
      const rows = await writeExport({ file, format, columns }, fill).finally(() => bar?.end())
      const [since, until] = [iso(selection.since), iso(selection.until)]
      return {
        data: { what: dataset, format, file: path.resolve(file), since, until, rows },
        text: `Wrote ${countText(rows, dataset.slice(0, -1))} to ${path.resolve(file)}.`,
      }
    },
    { decrypts: flags.open, isReadOnly: true },
  )
}

function formatOf(file: string): ExportFormat {
  const extension = path.extname(file).slice(1)
  const format = exportFormats.find((name) => name === extension)
  if (format) return format
  const endings = exportFormats.map((name) => `.${name}`).join(', ')
  throw new Error(`--out must end in one of ${endings}, or --format must be set, got "${file}"`)
}

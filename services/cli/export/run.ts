import path from 'node:path'
import { createSkips } from '../../../infra/event-store/skips.ts'
import { iso } from '../../../projections/sessions/decision-shape.ts'
import type { Environment } from '../../../schemas/events.ts'
import type { TypedTime } from '../arguments.ts'
import { type Stores, withStores } from '../operator/core.ts'
import { type CommandOutcome, type OperatorOptions, requireOrganization } from '../operator/operate.ts'
import { progressBar } from '../progress.ts'
import { eventColumns, sessionColumns } from './columns.ts'
import { eventParts, writeEvents } from './events.ts'
import {
  type ExportManifest,
  type ExportPart,
  type ExportRequest,
  findManifest,
  missingParts,
  saveManifest,
} from './manifest.ts'
import type { ExportFormat } from './part.ts'
import { chooseSessions, sessionParts, writeSessions } from './sessions.ts'

export interface ExportFlags extends OperatorOptions {
  output: string
  format: ExportFormat
  open: boolean
  since?: TypedTime
  until?: TypedTime
  organization?: string
  environment?: Environment
  topic?: string
  type?: string
}

// Sessions or offsets of a part, a file of some 10 MB.
const each = 50_000

export function runExport(what: ExportManifest['what'], flags: ExportFlags): Promise<CommandOutcome> {
  return withStores((stores) => makeExport(stores, what, flags), { opensKeys: flags.open, isReadOnly: true })
}

async function makeExport(
  stores: Stores,
  what: ExportManifest['what'],
  flags: ExportFlags,
): Promise<CommandOutcome> {
  const { output: folder } = flags
  const request = await requestOf(stores, what, flags)
  const manifest = (await findManifest(folder, request)) ?? (await choose(stores, request, flags))
  const parts = await missingParts(folder, manifest)
  const bar = progressBar(parts.reduce((sum, { from, to }) => sum + to - from, 0))
  const writing = { folder, manifest, onDone: bar.add, onPart: notePart(folder, manifest) }
  if (what === 'sessions') await writeSessions({ ...writing, pool: stores.pool }, parts).finally(bar.end)
  else await writeTopic(stores, writing, parts).finally(bar.end)
  manifest.state = 'whole'
  await saveManifest(folder, manifest)
  return outcomeOf(folder, manifest, parts)
}

async function requestOf(
  { pool }: Stores,
  what: ExportManifest['what'],
  flags: ExportFlags,
): Promise<ExportRequest> {
  const { format, open, since, until, organization, environment = null, topic = null, type = null } = flags
  const organization_id = organization ? (await requireOrganization(pool, organization)).id : null
  const times = { since: since?.text ?? null, until: until?.text ?? null }
  return { what, format, is_open: open, filters: { ...times, organization_id, environment, topic, type } }
}

async function choose(stores: Stores, request: ExportRequest, flags: ExportFlags): Promise<ExportManifest> {
  const { output: folder, format, topic = '' } = flags
  const range = { since: flags.since?.at ?? 0, until: flags.until?.at ?? Date.now() }
  const parts =
    request.what === 'events'
      ? await eventParts(stores.log, { topic, ...range }, { format, each })
      : sessionParts(await chooseSessions(stores.pool, folder, { ...request, ...range }), { format, each })
  const columns = request.what === 'events' ? eventColumns : sessionColumns()
  const manifest: ExportManifest = {
    ...{ version: 1, ...request, ...range, columns, state: 'unfinished', rows: 0, parts },
  }
  await saveManifest(folder, manifest)
  return manifest
}

function notePart(folder: string, manifest: ExportManifest) {
  return async (part: ExportPart, rows: number): Promise<void> => {
    part.rows = rows
    manifest.rows = manifest.parts.reduce((sum, one) => sum + (one.rows ?? 0), 0)
    await saveManifest(folder, manifest)
  }
}

type EventWriting = Omit<Parameters<typeof writeEvents>[0], 'source' | 'topic'>

async function writeTopic(
  { log, codec, logger }: Stores,
  writing: EventWriting,
  parts: ExportPart[],
): Promise<void> {
  const skips = createSkips({ log, codec, logger })
  const topic = writing.manifest.filters.topic ?? ''
  await writeEvents({ ...writing, source: { log, codec, skips }, topic }, parts).finally(skips.close)
}

function outcomeOf(folder: string, manifest: ExportManifest, made: ExportPart[]): CommandOutcome {
  const { what, format, since, until, rows, parts, state } = manifest
  const counts = `${rows} ${what} in ${parts.length} files of ${path.resolve(folder)}`
  return {
    data: {
      ...{ what, format, folder: path.resolve(folder), state, since: iso(since), until: iso(until) },
      ...{ rows, parts: parts.length, parts_made: made.length },
    },
    text:
      made.length > 0
        ? `${counts}.`
        : `${counts}: they were there already. A newer export needs another folder.`,
  }
}

import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { iso } from '../../../infra/iso.ts'
import { countText } from '../../../infra/text.ts'
import { currentMarks, newestMarks } from '../../../projections/sessions/marks.ts'
import type { DataScope } from '../../../projections/sessions/scope.ts'
import type { Environment } from '../../../schemas/events.ts'
import { markSessions } from '../../marks/commands.ts'
import { maxSessionsPerMark } from '../../marks/decide.ts'
import { markJson } from '../../marks/schemas.ts'
import type { Core } from '../../server/dependencies.ts'
import { choice, jsonFlag, since } from '../arguments.ts'
import { withStores } from './core.ts'
import { type ImportedMark, parseMarks, problemAt, requireNoProblems } from './marks-file.ts'
import {
  asOperator,
  type CommandOutcome,
  type OperatorOptions,
  requireOrganization,
  runAndPrint,
} from './run.ts'

interface ScopeFlags {
  organization: string
  environment: Environment
}

export function defineMarks(marks: Command): void {
  scopeCommand(marks, 'import')
    .description('Label sessions from a CSV file with the columns session_id, label and reason')
    .argument('<file>', 'path of the CSV file')
    .option(...jsonFlag)
    .action((file: string, flags: ScopeFlags & OperatorOptions) =>
      runAndPrint(flags, async (core) => {
        const marks = parseMarks(await readFile(file, 'utf8'))
        return importMarks(core, await scopeOf(core, flags), marks)
      }),
    )
  scopeCommand(marks, 'export')
    .description('Print the newest label of each session as CSV')
    .option(
      '--since <time>',
      'only labels set since: 7d, 24h, 2026-11-23 or 2026-11-23T12:00:00Z',
      since,
      0,
    )
    .action((flags: ScopeFlags & { since: number }) =>
      withStores(async ({ pool }) => printMarks({ pool }, await scopeOf({ pool }, flags), flags)),
    )
}

const scopeCommand = (marks: Command, name: string) =>
  marks
    .command(name)
    .requiredOption('--organization <organization>', 'organization id or slug')
    .option('--environment <name>', 'live or test', choice('live', 'test'), 'live')

async function scopeOf({ pool }: Pick<Core, 'pool'>, flags: ScopeFlags): Promise<DataScope> {
  const { id: organizationId } = await requireOrganization(pool, flags.organization)
  return { organizationId, environment: flags.environment }
}

// Skips sessions that already have the label, so that an interrupted import can be repeated.
async function importMarks(
  core: Core,
  scope: DataScope,
  imported: ImportedMark[],
): Promise<CommandOutcome> {
  const changed = await findChanged(core, scope, imported)
  const groups = Map.groupBy(changed, ({ label, reason }) => `${label} ${reason}`)
  const marks: object[] = []
  for (const chunk of [...groups.values()].flatMap(chunksOf)) {
    const [first] = await markChunk(asOperator(core, 'marks import'), scope, chunk)
    if (first) marks.push(markJson(first, chunk.length))
  }
  const unchanged = imported.length - changed.length
  const text = `Labeled ${countText(changed.length, 'session')}. ${unchanged} already had the label.`
  return { data: { session_count: changed.length, unchanged_count: unchanged, marks }, text }
}

function chunksOf(marks: ImportedMark[]): ImportedMark[][] {
  const chunks = Math.ceil(marks.length / maxSessionsPerMark)
  return Array.from({ length: chunks }, (_, i) =>
    marks.slice(i * maxSessionsPerMark, (i + 1) * maxSessionsPerMark),
  )
}

// Labels sessions that all get the same label and reason.
async function markChunk(
  deps: ReturnType<typeof asOperator>,
  scope: DataScope,
  chunk: ImportedMark[],
) {
  const [first] = chunk
  if (!first) return []
  const target = { sessionIds: chunk.map(({ session_id }) => session_id) }
  return markSessions(deps, { scope, label: first.label, reason: first.reason, target })
}

// Returns the marks that differ from the current ones. Throws a 422 if a session is not in the scope.
async function findChanged(
  { pool }: Core,
  scope: DataScope,
  imported: ImportedMark[],
): Promise<ImportedMark[]> {
  const current = await currentMarks(
    pool,
    scope,
    imported.map(({ session_id }) => session_id),
  )
  const unknown = imported.filter(({ session_id }) => !current.has(session_id))
  requireNoProblems(
    unknown.map(({ line }) =>
      problemAt(line, 'session_id', 'a session of this organization and environment'),
    ),
  )
  return imported.filter(({ session_id, label, reason }) => {
    const existing = current.get(session_id)
    return existing?.label !== label || existing.reason !== reason
  })
}

const pageSize = 1000

async function printMarks(
  { pool }: Pick<Core, 'pool'>,
  scope: DataScope,
  { since }: { since: number },
): Promise<void> {
  console.log('session_id,label,reason,marked_at')
  for (let after = ''; ; ) {
    const rows = await newestMarks(pool, scope, { after, limit: pageSize })
    for (const { session_id, label, reason, marked_at } of rows)
      if (marked_at >= since)
        console.log([session_id, label, reason ?? '', iso(marked_at)].join(','))
    if (rows.length < pageSize) return
    after = rows.at(-1)?.session_id ?? ''
  }
}

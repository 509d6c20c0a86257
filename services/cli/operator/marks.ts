import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { iso } from '../../../projections/sessions/decision-shape.ts'
import { currentMarks, newestMarks } from '../../../projections/sessions/marks.ts'
import type { DataScope } from '../../../projections/sessions/scope.ts'
import type { Environment } from '../../../schemas/events.ts'
import { markSessions } from '../../marks/commands.ts'
import { maxMarked } from '../../marks/decide.ts'
import { markJson } from '../../marks/schemas.ts'
import type { Core } from '../../server/dependencies.ts'
import { jsonFlag, since, wordOf } from '../arguments.ts'
import { withStores } from './core.ts'
import { type ImportedMark, parseMarks, problemAt, refuse } from './marks-file.ts'
import {
  asOperator,
  type CommandOutcome,
  type OperatorOptions,
  operate,
  requireOrganization,
} from './operate.ts'

interface ScopeFlags {
  organization: string
  environment: Environment
}

export function defineMarks(marks: Command): void {
  scopeCommand(marks, 'import')
    .description(
      'Say what sessions really were: a CSV file with the columns session_id, label and reason',
    )
    .argument('<file>', 'its path')
    .option(...jsonFlag)
    .action((file: string, flags: ScopeFlags & OperatorOptions) =>
      operate(flags, async (core) => {
        const marked = parseMarks(await readFile(file, 'utf8'))
        return importMarks(core, await scopeOf(core, flags), marked)
      }),
    )
  scopeCommand(marks, 'export')
    .description('Print the newest mark of each session as CSV')
    .option(
      '--since <time>',
      'only those made from this time on: 7d, 24h, 2026-11-23 or 2026-11-23T12:00:00Z',
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
    .requiredOption('--organization <organization>', 'its id or slug')
    .option('--environment <name>', 'live or test', wordOf('live', 'test'), 'live')

async function scopeOf({ pool }: Pick<Core, 'pool'>, flags: ScopeFlags): Promise<DataScope> {
  const { id: organizationId } = await requireOrganization(pool, flags.organization)
  return { organizationId, environment: flags.environment }
}

// A session that is marked so already is left as it is, so that an import that ended halfway can be repeated.
async function importMarks(
  core: Core,
  scope: DataScope,
  marked: ImportedMark[],
): Promise<CommandOutcome> {
  const fresh = await changing(core, scope, marked)
  const groups = Map.groupBy(fresh, ({ label, reason }) => `${label} ${reason}`)
  const marks: object[] = []
  for (const some of [...groups.values()].flatMap(chunksOf)) {
    const [first] = await markAlike(asOperator(core, 'marks import'), scope, some)
    if (first) marks.push(markJson(first, some.length))
  }
  const unchanged = marked.length - fresh.length
  const text = `${fresh.length} sessions were marked, by ${marks.length} marks. ${unchanged} were marked so already.`
  return { data: { session_count: fresh.length, unchanged_count: unchanged, marks }, text }
}

function chunksOf(marked: ImportedMark[]): ImportedMark[][] {
  const chunks = Math.ceil(marked.length / maxMarked)
  return Array.from({ length: chunks }, (_, i) => marked.slice(i * maxMarked, (i + 1) * maxMarked))
}

async function markAlike(
  deps: ReturnType<typeof asOperator>,
  scope: DataScope,
  some: ImportedMark[],
) {
  const [first] = some
  if (!first) return []
  const named = { sessionIds: some.map(({ session_id }) => session_id) }
  return markSessions(deps, { scope, label: first.label, reason: first.reason, named })
}

async function changing(
  { pool }: Core,
  scope: DataScope,
  marked: ImportedMark[],
): Promise<ImportedMark[]> {
  const known = await currentMarks(
    pool,
    scope,
    marked.map(({ session_id }) => session_id),
  )
  const unknown = marked.filter(({ session_id }) => !known.has(session_id))
  refuse(
    unknown.map(({ line }) =>
      problemAt(line, 'session_id', 'a session of this organization and environment'),
    ),
  )
  return marked.filter(({ session_id, label, reason }) => {
    const before = known.get(session_id)
    return before?.label !== label || before.reason !== reason
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

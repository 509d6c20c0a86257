import { z } from 'zod'
import { type FieldIssue, invalidFields } from '../../../infra/errors/errors.ts'
import { markLabel, markReason, sessionId } from '../../../projections/sessions/decision-schemas.ts'

const noReason = z.literal('').transform(() => null)
const row = z.object({
  session_id: sessionId,
  label: markLabel,
  reason: z.union([noReason, markReason]).default(null),
})

export type ImportedMark = z.output<typeof row> & { line: number }

const columns = ['session_id', 'label', 'reason', 'marked_at']
const requiredColumns = columns.slice(0, 2)
const expectations: Record<string, string> = {
  session_id: 'an id (sid_ and 26 characters)',
  label: `one of ${markLabel.options.join(', ')}`,
  reason: '1-64 characters of a-z, 0-9 and _, or empty',
}

/** Parses CSV as `marks export` prints it. Throws a 422 that names the invalid lines and columns. */
export function parseMarks(text: string): ImportedMark[] {
  const [head = [], ...lines] = text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    // Values never contain commas or quotes, but spreadsheets may add quotes around them.
    .map((line) => line.split(',').map((cell) => cell.trim().replace(/^"(.*)"$/, '$1')))
  requireNoProblems(headerProblems(head))
  const problems: FieldIssue[] = []
  const marks = lines.flatMap((cells, i) => {
    if (cells.join('') === '') return []
    const { data, error } = row.safeParse(
      Object.fromEntries(head.map((name, at) => [name, cells[at] ?? ''])),
    )
    const names = new Set(error?.issues.map(({ path }) => String(path[0])))
    for (const name of names) problems.push(problemAt(i + 2, name, expectations[name]))
    if (cells.length > head.length)
      problems.push(problemAt(i + 2, 'cells', `at most ${head.length}`))
    return data ? [{ ...data, line: i + 2 }] : []
  })
  requireNoProblems([...problems, ...duplicates(marks)])
  return marks
}

function headerProblems(head: string[]): FieldIssue[] {
  const missing = requiredColumns.filter((name) => !head.includes(name))
  const unknown = head.filter((name, i) => !columns.includes(name) || head.indexOf(name) < i)
  return [...missing, ...unknown].map((name) =>
    problemAt(1, name, `one of the columns ${columns.join(', ')}`),
  )
}

// A session may occur only once, because the file doesn't say which of two labels is newer.
function duplicates(marks: ImportedMark[]): FieldIssue[] {
  const seen = new Set<string>()
  return marks.flatMap(({ session_id, line }) =>
    seen.size === seen.add(session_id).size
      ? [problemAt(line, 'session_id', 'on only one line')]
      : [],
  )
}

export function problemAt(line: number, column: string, expected: string | undefined): FieldIssue {
  return {
    name: `line ${line}, ${column}`,
    issue: 'invalid',
    ...(expected && { expected }),
  }
}

const maxProblems = 20

/** Throws a 422 with the first 20 problems, if there are any. */
export function requireNoProblems(problems: FieldIssue[]): void {
  if (problems.length > 0) throw invalidFields({ fields: problems.slice(0, maxProblems) })
}

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
const needed = columns.slice(0, 2)
const expected: Record<string, string> = {
  session_id: 'an id (sid_ and 26 characters)',
  label: `one of ${markLabel.options.join(', ')}`,
  reason: '1-64 of a-z, 0-9 and _, or nothing',
}

/** Lines of CSV under a head, as `marks export` prints them. ApiError: 422 that names lines and columns. */
export function parseMarks(text: string): ImportedMark[] {
  const [head = [], ...lines] = text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    // No value of a mark has commas or quotes; spreadsheets may put quotes around it.
    .map((line) => line.split(',').map((cell) => cell.trim().replace(/^"(.*)"$/, '$1')))
  refuse(headProblems(head))
  const problems: FieldIssue[] = []
  const marks = lines.flatMap((cells, i) => {
    if (cells.join('') === '') return []
    const { data, error } = row.safeParse(
      Object.fromEntries(head.map((name, at) => [name, cells[at] ?? ''])),
    )
    const names = new Set(error?.issues.map(({ path }) => String(path[0])))
    for (const name of names) problems.push(problemAt(i + 2, name, expected[name]))
    if (cells.length > head.length)
      problems.push(problemAt(i + 2, 'cells', `at most ${head.length}`))
    return data ? [{ ...data, line: i + 2 }] : []
  })
  refuse([...problems, ...repeated(marks)])
  return marks
}

function headProblems(head: string[]): FieldIssue[] {
  const missing = needed.filter((name) => !head.includes(name))
  const unknown = head.filter((name, i) => !columns.includes(name) || head.indexOf(name) < i)
  return [...missing, ...unknown].map((name) =>
    problemAt(1, name, `among the columns ${columns.join(', ')}`),
  )
}

// Which of two would be the newer one is not said by the file.
function repeated(marks: ImportedMark[]): FieldIssue[] {
  const seen = new Set<string>()
  return marks.flatMap(({ session_id, line }) =>
    seen.size === seen.add(session_id).size
      ? [problemAt(line, 'session_id', 'on one line only')]
      : [],
  )
}

export function problemAt(line: number, column: string, expects: string | undefined): FieldIssue {
  return {
    name: `line ${line}, ${column}`,
    issue: 'invalid',
    ...(expects && { expected: expects }),
  }
}

const maxProblems = 20

/** 422 where there are problems, with the first of them. */
export function refuse(problems: FieldIssue[]): void {
  if (problems.length > 0) throw invalidFields({ fields: problems.slice(0, maxProblems) })
}

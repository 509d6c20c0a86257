import { isTransient } from '../../../infra/event-store/apply-batch.ts'

/** Failure of a view. Unlike other errors, its message never contains values of events or rows. */
export class ViewFailed extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ViewFailed'
  }
}

/** Returns a ViewFailed with the name of the error and its line in the file, but without its message. */
export function handlerFailure(file: string, error: unknown): ViewFailed {
  if (error instanceof ViewFailed) return error
  const name =
    error instanceof Error && /^[A-Za-z]{0,30}Error$/.test(error.name) ? error.name : 'an error'
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const [frame] = stack.split('\n').filter((line) => /^ +at /.test(line) && line.includes(file))
  const lineNumber = /:(\d+):\d+\)?$/.exec(frame ?? '')?.[1]
  return new ViewFailed(`the handler threw ${name}${lineNumber ? ` at line ${lineNumber}` : ''}`)
}

/** Throws a ViewFailed with the SQLSTATE. Rethrows transient errors, which a retry can solve. */
export function throwRejectedRows(table: string, error: unknown): never {
  if (isTransient(error) || !(error instanceof Error)) throw error
  const code = 'code' in error ? ` (SQLSTATE ${String(error.code)})` : ''
  const column =
    'column' in error && typeof error.column === 'string' ? `, column ${error.column}` : ''
  throw new ViewFailed(`Postgres rejected rows of the table ${table}${column}${code}`)
}

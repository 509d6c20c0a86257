import { isTransient } from '../../../infra/event-store/apply-batch.ts'

/** What a view cannot deal with. The message never has a value: those of errors of others may. */
export class ViewFailed extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ViewFailed'
  }
}

/** Says what was thrown, and where in the file, without its message. */
export function thrownIn(file: string, error: unknown): ViewFailed {
  if (error instanceof ViewFailed) return error
  const known =
    error instanceof Error && /^[A-Za-z]{0,30}Error$/.test(error.name) ? error.name : 'an error'
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const [line] = stack.split('\n').filter((one) => /^ +at /.test(one) && one.includes(file))
  const place = /:(\d+):\d+\)?$/.exec(line ?? '')?.[1]
  return new ViewFailed(`the handler threw ${known}${place ? ` at line ${place}` : ''}`)
}

/** Says what Postgres refused, by its code. An error that may go away is thrown as it is. */
export function refused(table: string, error: unknown): never {
  if (isTransient(error) || !(error instanceof Error)) throw error
  const code = 'code' in error ? ` (SQLSTATE ${String(error.code)})` : ''
  const column =
    'column' in error && typeof error.column === 'string' ? `, column ${error.column}` : ''
  throw new ViewFailed(`Postgres refused rows of the table ${table}${column}${code}`)
}

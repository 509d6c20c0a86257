import { useState } from 'preact/hooks'
import { RequestFailure } from './api.ts'

/**
 * Returns `run`, which runs a mutation, and the error messages if the latest run failed: in `errors`, those of the named
 * request fields, to show at their inputs; in `failure`, the rest.
 */
export function useMutation<Name extends string = never>(fieldNames: readonly Name[] = []) {
  const [failed, setFailed] = useState<RequestFailure | null>(null)
  const [isRunning, setRunning] = useState(false)
  const run = async (mutate: () => Promise<void>): Promise<void> => {
    setFailed(null)
    setRunning(true)
    try {
      await mutate()
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error
      setFailed(error)
    } finally {
      setRunning(false)
    }
  }
  return { run, isRunning, ...failureMessages(failed, fieldNames) }
}

function failureMessages<Name extends string>(
  failed: RequestFailure | null,
  fieldNames: readonly Name[],
): { errors: Partial<Record<Name, string>>; failure: string | null } {
  const errors: Partial<Record<Name, string>> = {}
  for (const name of fieldNames) {
    const field = failed?.fields.find((other) => other.name.split(/[.[]/, 1)[0] === name)
    if (field) errors[name] = field.message
  }
  const areAllShown = failed?.fields.every(({ name }) =>
    fieldNames.some((shown) => name.split(/[.[]/, 1)[0] === shown),
  )
  const isShown = failed !== null && failed.fields.length > 0 && areAllShown
  return { errors, failure: failed === null || isShown ? null : failed.message }
}

export function MutationFailure({ failure }: { failure: string | null }) {
  return failure === null ? null : (
    <p class="note bad" role="alert">
      {failure}
    </p>
  )
}

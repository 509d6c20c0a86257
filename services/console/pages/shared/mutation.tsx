import { useState } from 'preact/hooks'
import { RequestFailure } from './api.ts'

/**
 * Returns `run`, which runs a mutation, and the error messages if the latest run failed: in `errors`, those of the named
 * request fields, to show at their inputs; in `failure`, the rest.
 */
export function useMutation<Name extends string = never>(fieldNames: readonly Name[] = []) {
  const [failed, setFailed] = useState<RequestFailure | null>(null)
  const [isRunning, setRunning] = useState(false)
  const run = async (mutate: () => Promise<unknown>): Promise<void> => {
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
  const errors: Partial<Record<Name, string>> = {}
  let areAllShown = true
  for (const { name, message } of failed?.fields ?? []) {
    const field = fieldNames.find((shown) => `${name.replace('[', '.')}.`.startsWith(`${shown}.`))
    if (field) errors[field] ??= message
    else areAllShown = false
  }
  const isShown = areAllShown && Object.keys(errors).length > 0
  return { run, isRunning, errors, failure: failed && !isShown ? failed.message : null }
}

export function MutationFailure({ failure }: { failure: string | null }) {
  return failure === null ? null : (
    <p class="note bad" role="alert">
      {failure}
    </p>
  )
}

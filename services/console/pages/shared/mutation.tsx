import { useState } from 'preact/hooks'
import { RequestFailure } from './api.ts'

/** Returns `run`, which runs a mutation, and the error message if the latest run failed. */
export function useMutation() {
  const [failure, setFailure] = useState<string | null>(null)
  const run = async (mutate: () => Promise<void>): Promise<void> => {
    setFailure(null)
    try {
      await mutate()
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error
      setFailure(error.message)
    }
  }
  return { run, failure }
}

export function MutationFailure({ failure }: { failure: string | null }) {
  return failure === null ? null : (
    <p class="note bad" role="alert">
      {failure}
    </p>
  )
}

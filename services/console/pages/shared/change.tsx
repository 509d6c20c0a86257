import { useState } from 'preact/hooks'
import { RequestFailure } from './api.ts'

/** Returns `run`, which runs a mutation, and the error message of the latest run. */
export function useChange() {
  const [failure, setFailure] = useState<string | null>(null)
  const run = async (change: () => Promise<void>): Promise<void> => {
    setFailure(null)
    try {
      await change()
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error
      setFailure(error.message)
    }
  }
  return { run, failure }
}

export function ChangeFailure({ failure }: { failure: string | null }) {
  return failure === null ? null : (
    <p class="note bad" role="alert">
      {failure}
    </p>
  )
}

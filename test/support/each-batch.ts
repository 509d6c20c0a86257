import type { Batch, ConsumeOptions, ResumePosition } from '../../infra/log/port.ts'

/** Returns a handler that calls `work` for each partition's batch. If it returns a position, reading resumes there. */
export function eachBatch(work: (batch: Batch) => unknown): ConsumeOptions['handle'] {
  return async (batches) => {
    const readOn: ResumePosition[] = []
    for (const batch of batches) {
      const chosen = await work(batch)
      if (isReadOn(chosen)) readOn.push(chosen)
    }
    return readOn
  }
}

const isReadOn = (answer: unknown): answer is ResumePosition =>
  typeof answer === 'object' && answer !== null && 'offset' in answer

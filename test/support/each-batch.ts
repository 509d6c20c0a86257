import type { Batch, ConsumeOptions, ResumePosition } from '../../infra/log/port.ts'

/** A handler that looks at the partitions one after the other; where it says nothing, they go on. */
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

import { Counter, type Registry } from 'prom-client'

export function countUnclaimed(registry: Registry): () => void {
  const unclaimed = new Counter({
    name: 'tidegate_collect_unclaimed_total',
    help: 'Bodies that this process decided on alone, because the database did not answer: other processes may have taken their sequence numbers.',
    registers: [registry],
  })
  return () => unclaimed.inc()
}

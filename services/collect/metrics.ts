import { Counter, Gauge, type Registry } from 'prom-client'
import { createCounter } from '../../infra/counter.ts'
import type { Shed } from './admission.ts'

const allShed: Shed[] = ['session', 'request']

export function countShed(registry: Registry): (what: Shed) => void {
  const shed = createCounter(registry, {
    name: 'tidegate_collect_shed_total',
    help: 'Requests answered 503 because of overload: new sessions, and requests over the limit in flight.',
    labels: { what: allShed },
  })
  return (what) => shed.inc({ what })
}

/** Counts documents by publishable key: a harvester or a monitor opens many and sends nothing. */
export function countDocuments(
  registry: Registry,
): (keyId: string, step: 'opened' | 'used') => void {
  const documents = new Counter({
    name: 'tidegate_collect_documents_total',
    help: 'Documents that were opened, and those that sent a body (used), by publishable key.',
    labelNames: ['key_id', 'step'],
    registers: [registry],
  })
  return (key_id, step) => documents.inc({ key_id, step })
}

export function measureAdmission(
  registry: Registry,
  { ages, inFlight }: { ages: () => readonly number[]; inFlight: () => number },
): void {
  new Gauge({
    name: 'tidegate_collect_backlog_seconds',
    help: 'How long the oldest record has been waiting for scoring and the read model; 0 while that is not known.',
    registers: [registry],
    collect() {
      this.set(Math.max(0, ...ages()) / 1000)
    },
  })
  new Gauge({
    name: 'tidegate_collect_in_flight',
    help: 'Collect requests whose bodies this process holds.',
    registers: [registry],
    collect() {
      this.set(inFlight())
    },
  })
}

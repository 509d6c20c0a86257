import { Counter, Gauge, type Registry } from 'prom-client'
import { createCounter } from '../../infra/counter.ts'
import type { Shed } from './admission.ts'

const shedKinds: Shed[] = ['session', 'request']

export function countShed(registry: Registry): (what: Shed) => void {
  const shed = createCounter(registry, {
    name: 'tidegate_collect_shed_total',
    help: 'Requests rejected with 503 because of overload: new sessions, and requests above the in-flight limit.',
    labels: { what: shedKinds },
  })
  return (what) => shed.inc({ what })
}

/** Returns a counter of documents by publishable key. A scraper or a monitor opens many and sends nothing. */
export function countDocuments(
  registry: Registry,
): (keyId: string, step: 'opened' | 'used') => void {
  const documents = new Counter({
    name: 'tidegate_collect_documents_total',
    help: 'Documents opened and documents that sent a body (used), by publishable key.',
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
    help: 'Age of the oldest record that scoring or the read model has not processed; 0 if unknown.',
    registers: [registry],
    collect() {
      this.set(Math.max(0, ...ages()) / 1000)
    },
  })
  new Gauge({
    name: 'tidegate_collect_in_flight',
    help: 'Collect requests in flight in this process.',
    registers: [registry],
    collect() {
      this.set(inFlight())
    },
  })
}

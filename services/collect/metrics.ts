import { Counter, Gauge, type Registry } from 'prom-client'
import { createCounter } from '../../infra/counter.ts'
import type { ShedKind } from './admission.ts'

const shedKinds: ShedKind[] = ['session', 'request']

export function createShedCounter(registry: Registry): (what: ShedKind) => void {
  const shed = createCounter(registry, {
    name: 'tidegate_collect_shed_total',
    help: 'Requests rejected with 503 because of overload: new sessions, and requests above the in-flight limit.',
    labels: { what: shedKinds },
  })
  return (what) => shed.inc({ what })
}

/** Returns a counter of documents by publishable key. Scrapers and monitors open many but send no bodies. */
export function createDocumentCounter(
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

export function registerAdmissionGauges(
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

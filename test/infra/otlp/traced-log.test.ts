import { AsyncLocalStorage } from 'node:async_hooks'
import {
  InMemorySpanExporter,
  SimpleSpanProcessor,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace'
import { describe, expect, it } from 'vitest'
import type { Batch, ResumePosition } from '../../../infra/log/port.ts'
import { createSpans, sessionTraceId } from '../../../infra/otlp/spans.ts'
import { traceLog } from '../../../infra/otlp/traced-log.ts'
import type { RequestTrace } from '../../../infra/otlp/traced-requests.ts'
import { createMemoryLog } from '../../support/memory-log.ts'

const topic = 'tidegate.collect.v1'
const record = (key: string, traceparent?: string) => ({
  topic,
  key,
  value: Buffer.from('x'),
  headers: {
    event_id: `bat_${key}`,
    event_type: 'BatchReceived',
    ...(traceparent && { traceparent }),
  },
})
const given = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`

function openTracedLog({ now = Date.now, ratio = 1 } = {}) {
  const exporter = new InMemorySpanExporter()
  const spans = createSpans({
    sampler: new TraceIdRatioBasedSampler(ratio),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
  })
  const memory = createMemoryLog({ now })
  const requests = new AsyncLocalStorage<RequestTrace | undefined>()
  const log = traceLog(memory, { spans, requests })
  const names = () => exporter.getFinishedSpans().map(({ name }) => name.split(' ')[0])
  const consume = (handle: (batches: Batch[]) => Promise<ResumePosition[] | undefined>) =>
    log.consume({ group: 'g', topics: [topic], handle })
  return { log, memory, requests, exporter, names, consume }
}

const traceOf = (traceparent: string | undefined) => traceparent?.split('-')[1]

describe('a record', () => {
  it('joins the trace of its cause, else of the request, else of its session', async () => {
    const { log, memory, requests } = openTracedLog()
    const request = { traceparent: () => given.replaceAll('a', 'c'), end: () => {} }
    await log.append([record('sid_1', given)])
    await requests.run(request, () => log.append([record('sid_1'), record('org_1')]))
    await log.append([record('sid_1')])
    const traces = memory.records.map(({ headers }) => traceOf(headers.traceparent))
    expect(traces).toEqual([
      'a'.repeat(32),
      'c'.repeat(32),
      'c'.repeat(32),
      sessionTraceId('sid_1'),
    ])
  })

  it('without cause, request and session is unchanged', async () => {
    const { log, memory, names } = openTracedLog()
    await log.append([record('probe')])
    expect(memory.records[0]?.headers).toEqual(record('probe').headers)
    expect(names()).toEqual([])
  })

  it('passes the span of its processing to the consumer as parent', async () => {
    const { log, memory, exporter, consume } = openTracedLog()
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    await consume(async ([batch]) => {
      resolve(batch?.records[0]?.headers.traceparent)
      return undefined
    })
    await log.append([record('sid_1')])
    const traceparent = await promise
    await memory.settled()
    const process = exporter.getFinishedSpans().find(({ name }) => name.startsWith('process'))
    expect(traceparent).toBe(`00-${sessionTraceId('sid_1')}-${process?.spanContext().spanId}-01`)
  })

  it('that is not sampled says so in its traceparent', async () => {
    const { log, memory, names, consume } = openTracedLog({ ratio: 0 })
    const handled: (string | undefined)[] = []
    await consume(async ([batch]) => {
      handled.push(batch?.records[0]?.headers.traceparent)
      return undefined
    })
    await log.append([record('sid_1')])
    await memory.settled()
    expect(handled).toEqual([memory.records[0]?.headers.traceparent])
    expect(handled[0]).toMatch(/-00$/)
    expect(names()).toEqual([])
  })
})

describe('no processing span is exported', () => {
  it.each<[string, { now?: () => number }, boolean]>([
    ['for a failed batch, which is retried', {}, true],
    ['for an old record', { now: () => Date.now() - 2 * 60 * 60 * 1000 }, false],
  ])('%s', async (_, options, failed) => {
    const { log, memory, names, consume } = openTracedLog(options)
    await consume(async () => (failed ? [{ topic, partition: 0, offset: 0, failed }] : undefined))
    await log.append([record('sid_1')])
    await memory.settled()
    expect(names()).toEqual(['send'])
  })

  it.each(['', 'nonsense', '00-zz-b-01'])('for an invalid traceparent: "%s"', async (header) => {
    const { log, memory, names, consume } = openTracedLog()
    await consume(async () => undefined)
    await memory.append([{ ...record('org_1'), headers: { traceparent: header } }])
    await log.append([])
    await memory.settled()
    expect(names()).toEqual([])
  })
})

import type { AddressData, AddressSource } from './file.ts'
import { mergeLabels } from './labels.ts'
import { indexRanges, nameAt, type Range, type Ranges, rangesOf, type Subject } from './ranges.ts'
import type { DataSource } from './sources.ts'

/** A source that was read. */
export interface ReadSource {
  source: DataSource
  ranges: Ranges
  /** `2026-11-27`. */
  date: string
}

export interface AppliedSources {
  data: AddressData
  /** What was not taken, and why. Of that the last file's data stay. */
  refused: { title: string; reason: string }[]
}

/** Replaces what the last file has of each source, unless the source is so unlike it that it is more likely broken. */
export function applySources(
  last: AddressData,
  read: readonly ReadSource[],
  isTrusted: boolean,
): AppliedSources {
  const refused: AppliedSources['refused'] = []
  let data = last
  for (const one of read) {
    const reason = isTrusted
      ? emptyReason(one.ranges)
      : unlikeReason(data[one.source.subject], one.ranges)
    if (reason) refused.push({ title: one.source.title, reason })
    else data = { ...data, ...replaced(data, one) }
  }
  const made =
    read
      .map(({ date }) => date)
      .sort()
      .at(-1) ?? last.head.made
  return { data: { ...data, head: { ...data.head, made } }, refused }
}

function replaced(data: AddressData, { source, ranges, date }: ReadSource): Partial<AddressData> {
  const { subject, title: name, licence } = source
  const isOther = (one: AddressSource) =>
    subject === 'labels' ? one.name !== name : one.subject !== subject
  const sources = [...data.head.sources.filter(isOther), { name, subject, licence, date }]
  const head = { ...data.head, sources }
  if (subject !== 'labels') return { head, [subject]: indexRanges(ranges) }
  // Labels of other operators stay. Those that the source names are the source's alone.
  const own = namesOf(ranges)
  const others = only(rangesOf(data.labels), (name) => !own.has(name))
  return { head, labels: indexRanges(mergeLabels([others, ranges])) }
}

const namesOf = ({ ipv4, ipv6 }: Ranges) => new Set([...ipv4, ...ipv6].map(({ name }) => name))

const only = ({ ipv4, ipv6 }: Ranges, isIn: (name: string) => boolean): Ranges => ({
  ipv4: ipv4.filter(({ name }) => isIn(name)),
  ipv6: ipv6.filter(({ name }) => isIn(name)),
})

// An update changes some ranges. A broken file has few, or says something else of most addresses.
const leastOfLast = 0.5
const mostOfLast = 3
const leastEqual = 0.5
const sampled = 1000

const emptyReason = ({ ipv4 }: Ranges) =>
  ipv4.length === 0 ? 'it has no IPv4 addresses' : undefined

function unlikeReason(last: Subject, next: Ranges): string | undefined {
  const names = namesOf(next)
  const known = only(rangesOf(last), (name) => names.has(name)).ipv4
  if (known.length === 0 || next.ipv4.length === 0) return emptyReason(next)
  const size = next.ipv4.length / known.length
  if (size < leastOfLast || size > mostOfLast)
    return `it has ${next.ipv4.length} ranges of IPv4, and the last file had ${known.length}`
  const found = indexRanges({ ipv4: mergeLabels([{ ipv4: next.ipv4, ipv6: [] }]).ipv4, ipv6: [] })
  const sample = sampleOf(known)
  const equal = sample.filter(({ start, name }) => nameAt(found, start) === name).length
  return equal < sample.length * leastEqual
    ? `of ${sample.length} addresses it says the same as the last file of ${equal} only`
    : undefined
}

function sampleOf(ranges: Range[]): Range[] {
  const step = Math.max(1, Math.floor(ranges.length / sampled))
  return ranges.filter((_, i) => i % step === 0)
}

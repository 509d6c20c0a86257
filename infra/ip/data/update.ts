import type { AddressData, AddressSource } from './file.ts'
import { mergeLabels } from './labels.ts'
import { type IpIndex, indexRanges, nameAt, type Range, type Ranges, rangesOf } from './ranges.ts'
import type { DataSource } from './sources.ts'

/** A source with the ranges read from its file. */
export interface ReadSource {
  source: DataSource
  ranges: Ranges
  /** Date of the data, such as `2026-11-27`. */
  date: string
}

export interface AppliedSources {
  data: AddressData
  /** Rejected sources with the reason. Their data in the last file are kept. */
  refused: { title: string; reason: string }[]
}

/** Replaces each source's data in the last file. Rejects empty data and, unless `isTrusted`, implausible changes. */
export function applySources(
  last: AddressData,
  read: readonly ReadSource[],
  isTrusted: boolean,
): AppliedSources {
  const refused: AppliedSources['refused'] = []
  let data = last
  for (const update of read) {
    const reason = isTrusted
      ? emptyReason(update.ranges)
      : mismatchReason(data[update.source.subject], update.ranges)
    if (reason) refused.push({ title: update.source.title, reason })
    else data = { ...data, ...replace(data, update) }
  }
  const newestDate =
    read
      .map(({ date }) => date)
      .sort()
      .at(-1) ?? last.head.made
  return { data: { ...data, head: { ...data.head, made: newestDate } }, refused }
}

function replace(data: AddressData, { source, ranges, date }: ReadSource): Partial<AddressData> {
  const { subject, title: name, licence } = source
  const isOther = (entry: AddressSource) =>
    subject === 'labels' ? entry.name !== name : entry.subject !== subject
  const sources = [...data.head.sources.filter(isOther), { name, subject, licence, date }]
  const head = { ...data.head, sources }
  if (subject !== 'labels') return { head, [subject]: indexRanges(ranges) }
  // Replaces all labels that the source names, and keeps those of other operators.
  const newNames = namesOf(ranges)
  const others = filterByName(rangesOf(data.labels), (name) => !newNames.has(name))
  return { head, labels: indexRanges(mergeLabels([others, ranges])) }
}

const namesOf = ({ ipv4, ipv6 }: Ranges) => new Set([...ipv4, ...ipv6].map(({ name }) => name))

const filterByName = ({ ipv4, ipv6 }: Ranges, keep: (name: string) => boolean): Ranges => ({
  ipv4: ipv4.filter(({ name }) => keep(name)),
  ipv6: ipv6.filter(({ name }) => keep(name)),
})

// A real update changes some ranges. A broken file has too few, or disagrees about most addresses.
const minSizeRatio = 0.5
const maxSizeRatio = 3
const minEqualShare = 0.5
const sampleSize = 1000

const emptyReason = ({ ipv4 }: Ranges) =>
  ipv4.length === 0 ? 'it has no IPv4 addresses' : undefined

function mismatchReason(last: IpIndex, next: Ranges): string | undefined {
  const names = namesOf(next)
  const current = filterByName(rangesOf(last), (name) => names.has(name)).ipv4
  if (current.length === 0 || next.ipv4.length === 0) return emptyReason(next)
  const size = next.ipv4.length / current.length
  if (size < minSizeRatio || size > maxSizeRatio)
    return `it has ${next.ipv4.length} IPv4 ranges, and the current file has ${current.length}`
  const index = indexRanges({ ipv4: mergeLabels([{ ipv4: next.ipv4, ipv6: [] }]).ipv4, ipv6: [] })
  const sample = sampleOf(current)
  const equal = sample.filter(({ start, name }) => nameAt(index, start) === name).length
  return equal < sample.length * minEqualShare
    ? `only ${equal} of ${sample.length} sampled addresses match the current file`
    : undefined
}

function sampleOf(ranges: Range[]): Range[] {
  const step = Math.max(1, Math.floor(ranges.length / sampleSize))
  return ranges.filter((_, i) => i % step === 0)
}

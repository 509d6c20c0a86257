import type { Snapshot } from '../../../../schemas/observations.ts'
import { hashJson } from '../support.ts'

/** How many cameras, microphones and outputs there are; no permission is asked and no label leaves the page. */
export async function collectMedia(): Promise<Snapshot['media']> {
  const devices = await navigator.mediaDevices.enumerateDevices()
  const counts: Record<string, number> = {}
  for (const { kind } of devices) counts[kind] = (counts[kind] ?? 0) + 1
  return {
    device_count: devices.length,
    counts_by_kind: counts,
    blank_label_count: devices.filter(({ label }) => label === '').length,
    topology_hash: hashJson(devices.map(({ kind, groupId }) => [kind, groupId !== ''])),
  }
}

const weekMs = 7 * 24 * 60 * 60 * 1000

/** Different places of so many, one by each two bytes: one that was picked before gives way to the next. */
export function pickPlaces(bytes: Buffer, count: number): number[] {
  const picked = new Set<number>()
  for (let i = 0; i < bytes.length; i += 2) {
    let place = bytes.readUInt16BE(i) % count
    while (picked.has(place)) place = (place + 1) % count
    picked.add(place)
  }
  return [...picked]
}

/** How often what stands in a place was replaced by a time, in epoch milliseconds: places take turns, week by week. */
export function timesReplaced(
  place: number,
  { everyWeeks, now }: { everyWeeks: number; now: number },
): number {
  return Math.floor((Math.floor(now / weekMs) + place) / everyWeeks)
}

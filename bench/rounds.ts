export interface Variant<T> {
  name: string
  run: () => Promise<T>
}

/**
 * Runs the variants in turns, A B B A A B ..., so that neither always comes first or last. The first turn of each
 * warms up (compilation, connections, caches) and is dropped.
 */
export async function interleave<T>(
  rounds: number,
  variants: readonly Variant<T>[],
): Promise<Record<string, T[]>> {
  const samples: Record<string, T[]> = Object.fromEntries(variants.map(({ name }) => [name, []]))
  for (const { run } of variants) await run()
  for (let round = 0; round < rounds; round++) {
    for (const { name, run } of turnOrder(variants, round)) samples[name]?.push(await run())
  }
  return samples
}

function turnOrder<T>(variants: readonly Variant<T>[], round: number): readonly Variant<T>[] {
  return round % 2 === 0 ? variants : variants.toReversed()
}

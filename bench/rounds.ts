export interface Variant<T> {
  name: string
  run: () => Promise<T>
}

/** Measured rounds of each variant, and its warm-up runs. */
export interface Turns {
  rounds: number
  warmUps: number
}

/**
 * Runs the variants in turns, A B B A A B ..., so that neither always comes first. The first turns of each are a
 * warm-up and are dropped.
 */
export async function interleave<T>(
  { rounds, warmUps }: Turns,
  variants: readonly Variant<T>[],
): Promise<Record<string, T[]>> {
  const samples: Record<string, T[]> = Object.fromEntries(variants.map(({ name }) => [name, []]))
  for (let turn = 0; turn < warmUps; turn++) for (const { run } of variants) await run()
  for (let round = 0; round < rounds; round++) {
    for (const { name, run } of turnOrder(variants, round)) samples[name]?.push(await run())
  }
  return samples
}

function turnOrder<T>(variants: readonly Variant<T>[], round: number): readonly Variant<T>[] {
  return round % 2 === 0 ? variants : variants.toReversed()
}

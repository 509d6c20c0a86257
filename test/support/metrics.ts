import { eventually } from './eventually.ts'

/** What `/metrics` shows of a moment after this was called: a text is kept for a second, and no two are the same. */
export async function freshMetrics(baseUrl: string): Promise<string> {
  const read = async () => (await fetch(`${baseUrl}/metrics`)).text()
  const kept = await read()
  return eventually(async () => {
    const text = await read()
    if (text === kept) throw new Error('the metrics are still those of before')
    return text
  })
}

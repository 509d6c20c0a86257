/** Returns the median of the CPU time of several runs, in microseconds. The first run, which compiles, is not counted. */
export async function cpuTimeOf(run: () => unknown, runs = 9): Promise<number> {
  await run()
  const times: number[] = []
  for (let i = 0; i < runs; i++) {
    const before = process.cpuUsage()
    await run()
    const { user, system } = process.cpuUsage(before)
    times.push(user + system)
  }
  times.sort((a, b) => a - b)
  return times[Math.floor(runs / 2)] ?? 0
}

// The kernel counts the time of a thread in steps of some milliseconds.
const leastMicroseconds = 100_000

/**
 * Returns the CPU time of one run in this thread, in microseconds: the mean of as many runs as take 100 ms. Other test files
 * run in other threads. The first run, which compiles, is not counted.
 */
export async function cpuTimeOf(run: () => unknown): Promise<number> {
  await run()
  const before = process.threadCpuUsage()
  for (let runs = 1; ; runs++) {
    await run()
    const { user, system } = process.threadCpuUsage(before)
    if (user + system >= leastMicroseconds) return (user + system) / runs
  }
}

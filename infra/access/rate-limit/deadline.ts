const slices = 5

/**
 * Whether `work` settles within about `ms`; resolves no later, but for the time in which this process itself stood
 * still. A process that stalls finds its timers due before it has read the answers that came meanwhile: so the time
 * is counted in slices, of which a stall uses up only one, and what has arrived is read before the last word.
 */
export function settlesWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    let left = slices
    let timer = setTimeout(tick, ms / slices)
    function tick() {
      left--
      if (left > 0) timer = setTimeout(tick, ms / slices)
      else setImmediate(() => resolve(false))
    }
    const finish = () => {
      clearTimeout(timer)
      resolve(true)
    }
    work.then(finish, finish)
  })
}

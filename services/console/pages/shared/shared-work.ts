interface Work<T> {
  result: Promise<T>
  waiting: number
  ending: AbortController
}

/** Whoever wants the same at the same time waits for one piece of work. It is given up once nobody waits any more. */
export function createSharedWork<T>() {
  const running = new Map<string, Work<T>>()

  function begin(key: string, start: (ending: AbortSignal) => Promise<T>): Work<T> {
    const ending = new AbortController()
    const work = { result: start(ending.signal), waiting: 0, ending }
    const end = () => running.get(key) === work && running.delete(key)
    work.result.then(end, end)
    ending.signal.addEventListener('abort', end)
    running.set(key, work)
    return work
  }

  return async (
    key: string,
    start: (ending: AbortSignal) => Promise<T>,
    leaving?: AbortSignal,
  ): Promise<T> => {
    leaving?.throwIfAborted()
    const work = running.get(key) ?? begin(key, start)
    work.waiting++
    leaving?.addEventListener('abort', () => --work.waiting === 0 && work.ending.abort())
    const result = await work.result
    leaving?.throwIfAborted()
    return result
  }
}

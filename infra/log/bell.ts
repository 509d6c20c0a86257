/** A bell for one sleeper: `ring` ends the sleep, or the next one if nobody sleeps. */
export function createBell() {
  let rung = false
  let wake: (() => void) | undefined

  return {
    ring(): void {
      rung = true
      wake?.()
    },
    /** Resolves on the next ring (or at once if it rang since the last sleep), at the latest after `ms`. */
    async sleep(ms: number): Promise<void> {
      if (!rung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
      wake = undefined
      rung = false
    },
  }
}

export type Bell = ReturnType<typeof createBell>

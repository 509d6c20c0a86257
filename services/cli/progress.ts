const everyMs = 2000

/** Prints what is under way to standard error, at most every two seconds. */
export function progress(): (line: string) => void {
  let printedAt = performance.now()
  return (line) => {
    if (performance.now() - printedAt < everyMs) return
    printedAt = performance.now()
    console.error(line)
  }
}

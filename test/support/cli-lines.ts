import { createInterface } from 'node:readline'
import { startCli } from './cli.ts'
import { eventually } from './eventually.ts'

/** A command that runs on, whose lines on standard output can be waited for. */
export function followCli(args: string[], env: Record<string, string>) {
  const child = startCli(args, env)
  const lines: string[] = []
  if (child.stdout) createInterface(child.stdout).on('line', (line) => lines.push(line))
  const line = (pattern: RegExp) =>
    eventually(
      async () => {
        const found = lines.find((one) => pattern.test(one))
        if (found !== undefined) return found
        if (child.exitCode !== null) throw Object.assign(new Error('ended'), await child.result)
        throw new Error(`no line ${pattern} in ${lines.join('\n')}`)
      },
      { timeoutMs: 30_000 },
    )
  return { lines, line, result: child.result, end: () => void child.kill('SIGINT') }
}

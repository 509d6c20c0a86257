import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Reporter, TestModule } from 'vitest/node'
import { root } from './test-projects.ts'

export interface FileDuration {
  /** From the project's root. */
  file: string
  seconds: number
  /** Errors thrown by hooks of its suites, which vitest's JSON report leaves out. */
  hookErrors: string[]
}

/** Reporter that writes how long each file's tests and hooks took and what the hooks threw, as JSON, to TEST_DURATIONS. */
export default class FileDurations implements Reporter {
  async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    const file = process.env.TEST_DURATIONS
    if (!file) return
    const durations = modules.map(
      (module): FileDuration => ({
        file: path.relative(root, module.moduleId),
        seconds: module.diagnostic().duration / 1000,
        hookErrors: [...module.children.allSuites()].flatMap((suite) =>
          suite.errors().map(({ message, stack }) => `${suite.fullName}: ${stack ?? message}`),
        ),
      }),
    )
    await writeFile(file, JSON.stringify(durations))
  }
}

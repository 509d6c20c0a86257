import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { UserConsoleLog } from 'vitest'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'
import { root } from './test-projects.ts'

export interface FileReport {
  /** Path from the project's root. */
  file: string
  seconds: number
  passed: number
  /** Failures of tests, hooks and the file itself. */
  failures: { name: string; message: string }[]
  /** Output of a failed file, including seeds. */
  output: string
}

export interface RunReport {
  files: FileReport[]
  /** Errors that no test caught. */
  unhandled: string[]
}

/** Reporter that writes the result of each file as JSON to TEST_REPORT. */
export default class RunReporter implements Reporter {
  private printed: UserConsoleLog[] = []

  onUserConsoleLog(log: UserConsoleLog): void {
    this.printed.push(log)
  }

  async onTestRunEnd(
    modules: readonly TestModule[],
    unhandled: readonly SerializedError[],
  ): Promise<void> {
    const target = process.env.TEST_REPORT
    if (!target) return
    const report: RunReport = {
      files: modules.map((module) => this.reportOf(module)),
      unhandled: unhandled.map(textOf),
    }
    await writeFile(target, JSON.stringify(report))
  }

  private reportOf(module: TestModule): FileReport {
    const tests = [...module.children.allTests()]
    const ofFile = module.errors().map((error) => ({ name: 'the file', message: textOf(error) }))
    const ofSuites = [...module.children.allSuites()].flatMap((suite) =>
      suite.errors().map((error) => ({ name: suite.fullName, message: textOf(error) })),
    )
    const ofTests = tests.flatMap((test) => {
      const { state, errors = [] } = test.result()
      return state === 'failed'
        ? [{ name: test.fullName, message: errors.map(textOf).join('\n') }]
        : []
    })
    const failures = [...ofFile, ...ofSuites, ...ofTests]
    const mine = this.printed.filter(({ taskId }) => taskId?.startsWith(module.id))
    return {
      file: path.relative(root, module.moduleId),
      seconds: module.diagnostic().duration / 1000,
      passed: tests.filter((test) => test.result().state === 'passed').length,
      failures,
      output: failures.length > 0 ? mine.map(({ content }) => content).join('') : '',
    }
  }
}

const textOf = ({ stack, message }: Pick<SerializedError, 'stack' | 'message'>): string =>
  stripVTControlCharacters(stack ?? message)

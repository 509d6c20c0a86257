import type { Command } from 'commander'
import { createRandom } from '../../../infra/random.ts'
import { createLogger } from '../../../infra/telemetry.ts'
import { systemCode } from '../../../infra/thrown.ts'
import { verifyService } from '../../gate/registry/commands.ts'
import { port, wordOf } from '../arguments.ts'
import { noCredentials, readCredentials } from '../credentials.ts'
import { errorText } from '../failure.ts'
import { runUntilSignal } from '../lifetime.ts'
import { type LoopbackAnswer, type LoopbackRequest, serveLoopback } from '../loopback-server.ts'
import { asOperator, withCore } from '../operator/operate.ts'
import { failureText } from '../signup/failure.ts'
import { serviceId } from '../signup/settings.ts'
import { printable } from '../tables.ts'
import { typed } from '../typed.ts'
import { readTarget, type Target } from '../webhooks/target.ts'
import {
  type Accounts,
  answerApproval,
  answerLogin,
  createAccounts,
  type Failure,
  failures,
  page,
} from './integrator.ts'
import { frontPage, hideService, registerSampleService } from './registration.ts'

interface Flags {
  port: number
  serviceId: string
  name: string
  fail: Failure
}

export function registerDevIntegrator(gate: Command): void {
  const command = gate.command('dev-integrator')
  const id = serviceId({ command, of: "option '--service-id <id>'" })
  command
    .description('Run a sample service to sign up for, beside a running tidegate dev, until Ctrl-C')
    .option('--port <n>', 'to listen on; 0 picks a free one', port, 0)
    .option('--service-id <id>', 'what agents sign up for', id, 'demo-service')
    .option('--name <name>', 'as people see it', 'Demo Service')
    .option(
      '--fail <how>',
      `instead of credentials: ${failures.join(', ')}`,
      wordOf(...failures),
      'never',
    )
    .action(async (flags: Flags) => {
      const start = (undo: AsyncDisposableStack) =>
        startIntegrator(flags, undo).catch((error: unknown) => {
          throw new Error(failureText(error, memberOptions), { cause: error })
        })
      await runUntilSignal({ start, stopWithinMs, logger: createLogger('warn', process.stderr) })
    })
}

const stopWithinMs = 10_000
const memberOptions = { id: '--service-id', name: '--name' }

async function startIntegrator(flags: Flags, undo: AsyncDisposableStack): Promise<void> {
  const { serviceId, name } = flags
  if (!(await readCredentials())) throw new Error(noCredentials())
  const target = await readTarget({ environment: 'test' })
  const { promise: registered, resolve } = Promise.withResolvers<string>()
  const accounts = createAccounts(createRandom())
  const server = await serveLoopback({
    port: flags.port,
    answer: async (request) =>
      answer(request, { flags, target, accounts, secret: await registered }),
  }).catch((error: unknown) => {
    if (systemCode(error) !== 'EADDRINUSE') throw error
    const message = `Port ${flags.port} is in use: name another with --port, or leave it out for a free one.`
    throw new Error(message, { cause: error })
  })
  undo.defer(server.close)
  const service = { serviceId, name, url: server.url }
  resolve(await registerSampleService(target, service))
  await vouchFor(serviceId).catch((error: unknown) =>
    tell(`${serviceId} is not verified, so its page asks more: ${errorText(error)}`),
  )
  undo.defer(() => hideService(target, service).catch((error: unknown) => tell(errorText(error))))
  tell(`${serviceId} listens on ${server.url}; Ctrl-C ends it.`)
  tell(`To sign up for it: ${typed('signup', serviceId)}\n`)
}

// Whoever runs this operates the running server, and may verify a service. Each start has to, because another address
// ends the verification.
async function vouchFor(serviceId: string): Promise<void> {
  await withCore((core) =>
    verifyService(asOperator(core, 'gate dev-integrator'), { serviceId, verified: true }),
  )
}

async function answer(
  request: LoopbackRequest,
  {
    flags,
    target,
    ...running
  }: { flags: Flags; target: Target; accounts: Accounts; secret: string },
): Promise<LoopbackAnswer> {
  const { pathname, searchParams } = new URL(request.url, target.baseUrl)
  const { serviceId, fail, name } = flags
  const route = `${request.method} ${pathname}`
  if (route === 'POST /webhook')
    return answerApproval(request, { ...running, serviceId, fail, tell })
  if (route === 'GET /auth/gate')
    return answerLogin(searchParams.get('code') ?? '', { ...target, tell })
  const known = ['GET /', 'GET /docs', 'GET /terms', 'GET /privacy'].includes(route)
  const text = known ? frontPage : 'There is no such page.'
  return page(known ? 200 : 404, { title: name, text })
}

const tell = (line: string) => console.log(printable(line))

import type { Command } from 'commander'
import { createRandom } from '../../../infra/random.ts'
import { createLogger } from '../../../infra/telemetry.ts'
import { systemCode } from '../../../infra/thrown.ts'
import { verifyService } from '../../gate/registry/commands.ts'
import { port, wordOf } from '../arguments.ts'
import { noCredentials, readCredentials } from '../credentials.ts'
import { errorText } from '../failure.ts'
import { runUntilSignal } from '../lifetime.ts'
import { type LoopbackRequest, type LoopbackResponse, serveLoopback } from '../loopback-server.ts'
import { asOperator, withCore } from '../operator/operate.ts'
import { failureText } from '../signup/failure.ts'
import { serviceId } from '../signup/settings.ts'
import { printable } from '../tables.ts'
import { commandLine } from '../typed.ts'
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
    .description(
      'Run a sample service to sign up for (needs a running tidegate dev); stop it with Ctrl-C',
    )
    .option('--port <n>', 'port to listen on; 0 picks a free one', port, 0)
    .option('--service-id <id>', 'id that agents sign up for', id, 'demo-service')
    .option('--name <name>', 'display name', 'Demo Service')
    .option(
      '--fail <how>',
      `failure to simulate instead of delivering credentials: ${failures.join(', ')}`,
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
    handle: async (request) =>
      handleRequest(request, { flags, target, accounts, secret: await registered }),
  }).catch((error: unknown) => {
    if (systemCode(error) !== 'EADDRINUSE') throw error
    const message = `Port ${flags.port} is in use: choose another with --port, or omit --port to pick a free one.`
    throw new Error(message, { cause: error })
  })
  undo.defer(server.close)
  const service = { serviceId, name, url: server.url }
  resolve(await registerSampleService(target, service))
  await verifySampleService(serviceId).catch((error: unknown) =>
    print(
      `Could not verify ${serviceId}, so its consent page asks for more confirmation: ${errorText(error)}`,
    ),
  )
  undo.defer(() => hideService(target, service).catch((error: unknown) => print(errorText(error))))
  print(`${serviceId} is listening on ${server.url}; press Ctrl-C to stop.`)
  print(`Sign up with: ${commandLine('signup', serviceId)}\n`)
}

// The user of this command is the operator of the server, who may verify services. Must be repeated at each start,
// because a new URL revokes the verification.
async function verifySampleService(serviceId: string): Promise<void> {
  await withCore((core) =>
    verifyService(asOperator(core, 'gate dev-integrator'), { serviceId, verified: true }),
  )
}

async function handleRequest(
  request: LoopbackRequest,
  {
    flags,
    target,
    ...approval
  }: { flags: Flags; target: Target; accounts: Accounts; secret: string },
): Promise<LoopbackResponse> {
  const { pathname, searchParams } = new URL(request.url, target.baseUrl)
  const { serviceId, fail, name } = flags
  const route = `${request.method} ${pathname}`
  if (route === 'POST /webhook')
    return answerApproval(request, { ...approval, serviceId, fail, print })
  if (route === 'GET /auth/gate')
    return answerLogin(searchParams.get('code') ?? '', { ...target, print })
  const isPage = ['GET /', 'GET /docs', 'GET /terms', 'GET /privacy'].includes(route)
  const text = isPage ? frontPage : 'Page not found.'
  return page(isPage ? 200 : 404, { title: name, text })
}

const print = (line: string) => console.log(printable(line))

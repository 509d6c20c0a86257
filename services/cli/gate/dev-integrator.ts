import type { Command } from 'commander'
import { createRandom } from '../../../infra/random.ts'
import { createLogger } from '../../../infra/telemetry.ts'
import { systemCode } from '../../../infra/thrown.ts'
import { verifyService } from '../../gate/registry/commands.ts'
import { choice, port } from '../arguments.ts'
import { commandLine } from '../command-line.ts'
import { noCredentialsMessage, readCredentials } from '../credentials.ts'
import { errorText } from '../failure.ts'
import { type LoopbackRequest, type LoopbackResponse, startLoopback } from '../loopback-server.ts'
import { asOperator, withCore } from '../operator/run.ts'
import { failureText } from '../signup/failure.ts'
import { serviceIdArgument } from '../signup/settings.ts'
import { runUntilSignal } from '../stop-signals.ts'
import { printable } from '../tables.ts'
import { readTarget, type Target } from '../webhooks/target.ts'
import {
  type Accounts,
  createAccounts,
  type FailureMode,
  failureModes,
  handleApproval,
  handleLogin,
  htmlPage,
} from './integrator.ts'
import { frontPage, hideService, registerSampleService } from './registration.ts'

interface Flags {
  port: number
  serviceId: string
  name: string
  fail: FailureMode
}

export function defineDevIntegrator(gate: Command): void {
  const command = gate.command('dev-integrator')
  const id = serviceIdArgument({ command, label: "option '--service-id <id>'" })
  command
    .description(
      'Run a sample service to sign up for (needs a running tidegate dev); stop it with Ctrl-C',
    )
    .option('--port <n>', 'port to listen on; 0 picks a free one', port, 0)
    .option('--service-id <id>', 'id that agents sign up for', id, 'demo-service')
    .option('--name <name>', 'display name', 'Demo Service')
    .option(
      '--fail <how>',
      `failure to simulate instead of delivering credentials: ${failureModes.join(', ')}`,
      choice(...failureModes),
      'never',
    )
    .action(async (flags: Flags) => {
      const start = (undo: AsyncDisposableStack) =>
        startIntegrator(flags, undo).catch((error: unknown) => {
          throw new Error(failureText(error, optionNames), { cause: error })
        })
      await runUntilSignal({ start, stopWithinMs, logger: createLogger('warn', process.stderr) })
    })
}

const stopWithinMs = 10_000
const optionNames = { id: '--service-id', name: '--name' }

async function startIntegrator(flags: Flags, undo: AsyncDisposableStack): Promise<void> {
  const { serviceId, name } = flags
  if (!(await readCredentials())) throw new Error(noCredentialsMessage())
  const target = await readTarget({ environment: 'test' })
  const { promise: signingSecret, resolve: resolveSecret } = Promise.withResolvers<string>()
  const accounts = createAccounts(createRandom())
  const server = await startLoopback({
    port: flags.port,
    handle: async (request) =>
      handleRequest(request, { flags, target, accounts, secret: await signingSecret }),
  }).catch((error: unknown) => {
    if (systemCode(error) !== 'EADDRINUSE') throw error
    const message = `Port ${flags.port} is in use: choose another with --port, or omit --port to pick a free one.`
    throw new Error(message, { cause: error })
  })
  undo.defer(server.close)
  const service = { serviceId, name, url: server.url }
  resolveSecret(await registerSampleService(target, service))
  await verifySampleService(serviceId).catch((error: unknown) =>
    print(
      `Could not verify ${serviceId}, so its consent page asks for more confirmation: ${errorText(error)}`,
    ),
  )
  undo.defer(() => hideService(target, service).catch((error: unknown) => print(errorText(error))))
  print(`${serviceId} is listening on ${server.url}; press Ctrl-C to stop.`)
  print(`Sign up with: ${commandLine('signup', serviceId)}\n`)
}

// Runs at each start, because a new URL revokes the verification. The user may verify, as the operator of the server.
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
    return handleApproval(request, { ...approval, serviceId, fail, print })
  if (route === 'GET /auth/gate')
    return handleLogin(searchParams.get('code') ?? '', { ...target, print })
  const isPage = ['GET /', 'GET /docs', 'GET /terms', 'GET /privacy'].includes(route)
  const text = isPage ? frontPage : 'Page not found.'
  return htmlPage(isPage ? 200 : 404, { title: name, text })
}

const print = (line: string) => console.log(printable(line))

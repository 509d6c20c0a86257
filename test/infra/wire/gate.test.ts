import { expect, test } from 'vitest'
import {
  agentTokenEnvName,
  envNameProblem,
  envPrefixOf,
  isCriticalEnvName,
  isEnvName,
  isGateManagedEnvName,
  isOperatorEnvName,
  isSteeringEnvName,
  isUnderPrefix,
} from '../../../infra/wire/gate.ts'

const split = (text: string) => text.trim().split(/\s+/)

const criticalNames =
  split(`ALL_PROXY BASH_ENV BASH_FUNC_ls%% BUNDLE_GEMFILE CARGO_BUILD_RUSTC_WRAPPER CARGO_HOME CLASSPATH
  CURL_CA_BUNDLE DOCKER_HOST DOTNET_STARTUP_HOOKS DYLD_INSERT_LIBRARIES EDITOR ENV GIT_CONFIG_COUNT GIT_SSH
  GIT_SSH_COMMAND GOFLAGS GOPROXY HOME HTTPS_PROXY HTTP_PROXY IFS JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS LD_AUDIT
  LD_LIBRARY_PATH LD_PRELOAD LESSOPEN MAVEN_OPTS NODE_EXTRA_CA_CERTS NODE_OPTIONS NODE_TLS_REJECT_UNAUTHORIZED
  NO_PROXY NPM_CONFIG_REGISTRY OPENSSL_CONF PATH PERL5DB PERL5LIB PERL5OPT PHP_INI_SCAN_DIR PIP_INDEX_URL
  PROMPT_COMMAND PS4 PYTHONINSPECT PYTHONPATH PYTHONSTARTUP REQUESTS_CA_BUNDLE RUBYLIB RUBYOPT RUSTC_WRAPPER SHELL
  SSH_ASKPASS SSH_AUTH_SOCK SSLKEYLOGFILE SSL_CERT_FILE SUDO_ASKPASS TMPDIR UV_INDEX_URL VISUAL XDG_CONFIG_HOME
  YARN_REGISTRY ZDOTDIR _JAVA_OPTIONS`)

/** Names that services use, and some that resemble critical ones. */
const usual =
  split(`ACME_API_KEY ACME_CALLBACK_URL ACME_HTTPS_PROXY_KEY ACME_PATH ALGOLIA_APP_ID ANTHROPIC_API_KEY
  AUTH0_DOMAIN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY BUNNY_API_KEY CARGO_REGISTRY_TOKEN CIRCLECI_TOKEN
  CLOUDFLARE_API_TOKEN CODECOV_TOKEN COMPOSERIZE_KEY DATABASE_URL DATADOG_API_KEY DENO_DEPLOY_TOKEN
  DIGITALOCEAN_TOKEN DOCKERHUB_TOKEN ENVOY_TOKEN FASTLY_API_TOKEN FIREBASE_TOKEN GITHUB_TOKEN GITLAB_TOKEN
  GOOGLE_API_KEY HEROKU_API_KEY HOMEASSISTANT_TOKEN HUGGINGFACE_TOKEN JAVASCRIPT_KEY LDAPCLOUD_KEY LINEAR_API_KEY
  MAILGUN_API_KEY MONGODB_URI MY_PATH NODEJS_KEY NODEMAILER_PASS NPM_TOKEN NUGET_API_KEY OPENAI_API_KEY PATHS
  PERLMAVEN_KEY PINECONE_API_KEY PYTHONANYWHERE_API_TOKEN REDIS_URL RUBYGEMS_API_KEY SENDGRID_API_KEY SENTRY_DSN
  SHELLHUB_KEY SSHID_TOKEN SSLMATE_API_KEY STRIPE_SECRET_KEY SUPABASE_URL TWILIO_AUTH_TOKEN USERLIST_KEY
  XNPM_CONFIG_X`)

test.each(criticalNames)('%s is critical', (name) => {
  expect(isCriticalEnvName(name)).toBe(true)
  expect(isCriticalEnvName(name.toLowerCase())).toBe(true)
})

test.each(usual)('%s is harmless', (name) => {
  expect(isCriticalEnvName(name)).toBe(false)
  expect(isOperatorEnvName(name)).toBe(false)
})

test('TIDEGATE_ names are for the operator', () => {
  expect(['TIDEGATE_URL', 'tidegate_secret_key'].map(isOperatorEnvName)).toEqual([true, true])
  expect(['TIDEGATES_KEY', 'ACME_TIDEGATE_KEY'].map(isOperatorEnvName)).toEqual([false, false])
})

test.each([
  ['acme-mail', 'ACME_API_KEY', false],
  ['acme-mail', 'ACME_MAIL_API_KEY', true],
  ['acme_mail', 'acme_mail_key', true],
  ['xn--mller-kva', 'XN_MLLER_KVA_KEY', true],
  ['1demo', '_1DEMO_KEY', true],
  ['acme', 'ACME', false],
  ['acme', 'ACMEX_KEY', false],
  ['acme', 'DATABASE_URL', false],
  ['acme', 'MY_ACME_KEY', false],
])('with the prefix of %s, %s: %s', (name, variable, isUnder) => {
  expect(isUnderPrefix(variable, envPrefixOf(name))).toBe(isUnder)
})

const steering = split(`OPENAI_BASE_URL anthropic_base_url ACME_API_BASE LINEAR_API_URL HF_ENDPOINT
    AWS_ENDPOINT_URL_S3 ACME_CONFIG ACME_CONFIG_DIR CLAUDE_CODE_USE_BEDROCK CODEX_HOME MAVEN_HOME RSYNC_RSH
    ACME_PROXY ACME_OPTIONS ACME_OPTS ACME_PATH ACME_PAGER ACME_ASKPASS ACME_REGISTRY
    ACME_SYSTEM_PROMPT MCP_SERVERS ACME_MCP_URL`)

test.each(steering)('%s steers programs, and only its owner may set it', (name) => {
  expect(isSteeringEnvName(name)).toBe(true)
  expect(envNameProblem(name, { serviceId: 'acme', prefix: null })).toBe('steers_programs')
  const [word = ''] = name.split('_')
  expect(envNameProblem(name, { serviceId: 'acme', prefix: envPrefixOf(word) })).toBeUndefined()
})

test.each(usual.filter((name) => !/PATHS?$|CONFIG/.test(name)))('%s steers nothing', (name) => {
  expect(envNameProblem(name, { serviceId: 'acme', prefix: null })).toBeUndefined()
})

test('a verified domain permits no critical names, and none of Gate or the operator', () => {
  const problem = (name: string, word: string) =>
    envNameProblem(name, { prefix: envPrefixOf(word) })
  expect(problem('NODE_OPTIONS', 'node')).toBe('process_critical')
  expect(problem('NO_PROXY', 'no')).toBe('process_critical')
  expect(problem('TIDEGATE_URL', 'tidegate')).toBe('of_the_operator')
  expect(problem('ACME_GATE_AGENT_TOKEN', 'acme')).toBe('gate_managed')
})

test.each([
  ['acme', 'ACME_GATE_AGENT_TOKEN'],
  ['acme-mail_2', 'ACME_MAIL_2_GATE_AGENT_TOKEN'],
  ['acme--mail', 'ACME_MAIL_GATE_AGENT_TOKEN'],
  ['a-_-b', 'A_B_GATE_AGENT_TOKEN'],
])('the agent token of %s is %s, which only Gate may set', (serviceId, name) => {
  expect(agentTokenEnvName(serviceId)).toBe(name)
  expect(isGateManagedEnvName(name)).toBe(true)
  expect(isGateManagedEnvName(name.toLowerCase())).toBe(true)
})

test('only Gate may set the agent token of older clients', () => {
  expect(isGateManagedEnvName('FOIL_AGENT_TOKEN')).toBe(true)
  expect(isGateManagedEnvName('ACME_AGENT_TOKEN')).toBe(false)
})

test.each(['A', '_a1', 'a'.repeat(128)])('%s is valid', (name) =>
  expect(isEnvName(name)).toBe(true),
)

test.each(['', '1A', 'A-B', 'A B', 'A=B', 'Ä', 'A\n', 'a'.repeat(129)])('%j is invalid', (name) =>
  expect(isEnvName(name)).toBe(false),
)

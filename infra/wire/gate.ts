import { z } from 'zod'
import { base32Characters, type GateSessionId, type Random } from '../ids.ts'

/** A short text such as `K4-7M9`. A signup's terminal and its consent page both show it. */
export function generateConfirmationCode(random: Random): string {
  const text = base32Characters(random(5))
  return `${text.slice(0, 2)}-${text.slice(2)}`.toUpperCase()
}

export const confirmationCodeSchema = z
  .string()
  .describe(
    'Shown beside the consent URL: the page shows the same, so that a person sees that they belong together.',
  )

const words = (text: string) => text.trim().split(/\s+/)

// Variables that change what a process runs or trusts (open-points.md 68), by what reads them.
const critical = new Set([
  // Shells, terminals and what they start.
  ...words(`_ BASHOPTS BASH_ENV BROWSER CDPATH COLUMNS COMSPEC EDITOR ENV EXECIGNORE FCEDIT FIGNORE FPATH GLOBIGNORE
    HISTFILE HOME IFS INPUTRC LESSCLOSE LESSOPEN LOGNAME MAILPATH MANPAGER OLDPWD PAGER PATH PATHEXT POSIXLY_CORRECT
    PROMPT_COMMAND PS0 PS1 PS2 PS3 PS4 PSMODULEPATH PWD SHELL SHELLOPTS SYSTEMROOT TEMP TERM TERMCAP TERMINFO
    TERMINFO_DIRS TMP TMPDIR USER USERNAME USERPROFILE VISUAL WINDIR ZDOTDIR APPDATA LOCALAPPDATA PROGRAMDATA`),
  // The C library.
  ...words(`GCONV_PATH GETCONF_DIR HOSTALIASES LANGUAGE LOCALDOMAIN LOCPATH MALLOC_TRACE NIS_PATH NLSPATH
    RESOLV_HOST_CONF RES_OPTIONS TZDIR`),
  // Proxies, certificates and where requests go.
  ...words(`ALL_PROXY FTP_PROXY HTTPS_PROXY HTTP_PROXY NO_PROXY RSYNC_PROXY SOCKS_PROXY WS_PROXY WSS_PROXY
    AWS_CA_BUNDLE AWS_CONFIG_FILE AWS_ENDPOINT_URL AWS_SHARED_CREDENTIALS_FILE BOTO_CONFIG CLOUDSDK_CONFIG
    CURL_CA_BUNDLE CURL_HOME CURL_SSL_BACKEND DENO_CERT GRPC_DEFAULT_SSL_ROOTS_FILE_PATH HTTPLIB2_CA_CERTS KUBECONFIG
    NETRC NIX_SSL_CERT_FILE PGSERVICEFILE PGSYSCONFDIR REQUESTS_CA_BUNDLE SSLKEYLOGFILE WGETRC`),
  // Languages and their build tools.
  ...words(`ANT_OPTS ASPNETCORE_HOSTINGSTARTUPASSEMBLIES CATALINA_OPTS CLASSPATH GEM_HOME GEM_PATH GRADLE_OPTS
    GRADLE_USER_HOME JAVA_HOME JAVA_OPTIONS JAVA_OPTS JVM_OPTS LEIN_JVM_OPTS MAVEN_ARGS MAVEN_OPTS SBT_OPTS
    _JAVA_OPTIONS GO111MODULE GOBIN GOCACHE GODEBUG GOENV GOFLAGS GOINSECURE GOMODCACHE GONOPROXY GONOSUMDB GOPATH
    GOPRIVATE GOPROXY GOROOT GOSUMDB GOTOOLCHAIN GOVCS GOWORK JULIA_DEPOT_PATH JULIA_LOAD_PATH JULIA_PROJECT PERLIO
    PERLLIB PERL_CPANM_OPT PERL_MB_OPT PERL_MM_OPT PHPRC PHP_INI_SCAN_DIR RUBYLIB RUBYOPT RUBYPATH RUBYSHELL
    RUSTC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTDOC RUSTDOCFLAGS RUSTFLAGS RUSTUP_HOME RUSTUP_TOOLCHAIN
    ELIXIR_ERL_OPTIONS R_ENVIRON R_ENVIRON_USER R_HOME R_LIBS R_LIBS_USER R_PROFILE R_PROFILE_USER TCLLIBPATH
    CC CXX CPP LD AR AS CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFILES MAKEFLAGS MFLAGS CMAKE_TOOLCHAIN_FILE
    PKG_CONFIG_PATH VIRTUAL_ENV CONDARC`),
  // Package indexes and the homes of package managers.
  ...words(`CARGO_ENCODED_RUSTFLAGS CARGO_HOME CARGO_INSTALL_ROOT CARGO_REGISTRY_DEFAULT CARGO_REGISTRY_INDEX
    COMPOSER_AUTH COMPOSER_HOME COREPACK_HOME COREPACK_NPM_REGISTRY DENO_DIR HOMEBREW_BREW_GIT_REMOTE
    HOMEBREW_CORE_GIT_REMOTE HOMEBREW_BOTTLE_DOMAIN HOMEBREW_ARTIFACT_DOMAIN NUGET_PACKAGES PNPM_HOME POETRY_HOME
    PYENV_ROOT PIPX_HOME TWINE_REPOSITORY_URL`),
  // Displays, signatures and containers.
  ...words(`DBUS_SESSION_BUS_ADDRESS DISPLAY DOCKER_CERT_PATH DOCKER_CONFIG DOCKER_CONTEXT DOCKER_HOST
    DOCKER_TLS_VERIFY ELECTRON_RUN_AS_NODE GNUPGHOME GTK_MODULES GTK_PATH QT_PLUGIN_PATH SUDO_ASKPASS SUDO_EDITOR
    WAYLAND_DISPLAY XAUTHORITY`),
])

// Prefixes of such variables. Each ends with the underscore, where the variables have one there.
const criticalPrefixes =
  words(`BASH_FUNC_ BUNDLE_ BUN_CONFIG_ CARGO_ALIAS_ CARGO_BUILD_ CARGO_HTTP_ CARGO_NET_
  CARGO_REGISTRIES_ CARGO_SOURCE_ CARGO_TARGET_ COMPLUS_ CORECLR_ COR_ENABLE_ COR_PROFILER DOTNET_ DYLD_ ERL_ GIT_ GLIBC_ JAVA_TOOL_ JDK_
  LC_ LD_ LUA_ MALLOC_ NODE_ NPM_CONFIG_ OPENSSL_ PERL5 PIP_ PNPM_CONFIG_ SSH_ SSL_ UV_ XDG_ YARN_`)
// Every variable of Python's own begins so; PythonAnywhere is a company.
const ofPython = /^PYTHON(?!ANYWHERE)/

/** Whether the variable would hand the machine over. Without case, as Windows compares. */
export function isCriticalEnvName(name: string): boolean {
  const upper = name.toUpperCase()
  return (
    critical.has(upper) ||
    ofPython.test(upper) ||
    criticalPrefixes.some((prefix) => upper.startsWith(prefix))
  )
}

/** The service that is built in. */
export const systemServiceId = 'tidegate'

/** Whether only the built-in service may set the variable, because it would point our own tools elsewhere. */
export function isOperatorEnvName(name: string): boolean {
  return name.toUpperCase().startsWith('TIDEGATE_')
}

// What a variable's name ends with that tells programs and agents where they send what they have, what they read first,
// what they run and whom they trust. docs/guide/gate-services.md has the same list.
const steeringEnds =
  words(`API_BASE API_HOST API_URL ARGS ASKPASS BASEURL BASE_URI BROWSER CACERT CA_BUNDLE CA_CERT
    CA_CERTS CA_FILE CERT_FILE CMD COMMAND EDITOR ENDPOINT ENDPOINTS EXEC FLAGS HOME HOOK HOOKS INDEX_URL INIT
    INSECURE INSTRUCTIONS MIRROR OPTIONS OPTS PAGER PATH PATHS PLUGIN PLUGINS PRELOAD PROFILE PROMPT PROXY
    RC REGISTRY RSH SHELL STARTUP WRAPPER`)
const steers = new RegExp(
  `CONFIG|(?:^|_)(?:BASE_URL|ENDPOINT_URL|MCP)(?:_|$)|(?:^|_)(?:${steeringEnds.join('|')})$`,
)
// What coding agents read for themselves.
const agentPrefixes = words(
  'AIDER_ CLAUDE_ CLINE_ CODEX_ COPILOT_ CURSOR_ GEMINI_CLI_ GOOSE_ OPENCODE_ WINDSURF_',
)

/**
 * Whether the variable steers programs or agents, as `OPENAI_BASE_URL` does. A service may set it under the name of its
 * verified domain only.
 */
export function isSteeringEnvName(name: string): boolean {
  const upper = name.toUpperCase()
  return steers.test(upper) || agentPrefixes.some((prefix) => upper.startsWith(prefix))
}

/** `acme-mail` -> `ACME_MAIL_`, `3d-print` -> `_3D_PRINT_`: what variables of that name begin with. */
export function envPrefixOf(name: string): string {
  const words = name.toUpperCase().replace(/[^A-Z0-9]+/g, '_')
  return `${words}_`.replace(/^(?=\d)/, '_')
}

/** Without case, as Windows compares. */
export function isUnderPrefix(name: string, prefix: string | null | undefined): boolean {
  return prefix != null && name.toUpperCase().startsWith(prefix)
}

/**
 * Why a service may not give out the variable, whatever a person says; undefined where it may. `prefix` is what variables
 * begin with that are its own (`ACME_`), where that is verified.
 */
export function envNameProblem(
  name: string,
  { serviceId, prefix }: { serviceId?: string; prefix: string | null | undefined },
): 'process_critical' | 'steers_programs' | 'of_the_operator' | 'gate_managed' | undefined {
  if (isCriticalEnvName(name)) return 'process_critical'
  if (isOperatorEnvName(name) && serviceId !== systemServiceId) return 'of_the_operator'
  if (isGateManagedEnvName(name)) return 'gate_managed'
  return isSteeringEnvName(name) && !isUnderPrefix(name, prefix) ? 'steers_programs' : undefined
}

const agentTokenSuffix = '_GATE_AGENT_TOKEN'

/** `acme-mail`, `acme--mail` -> `ACME_MAIL_GATE_AGENT_TOKEN`, as the published SDKs derive it. */
export function agentTokenEnvName(serviceId: string): string {
  return serviceId.toUpperCase().replace(/[-_]+/g, '_') + agentTokenSuffix
}

/** Whether Gate itself writes the variable, so that no service may. */
export function isGateManagedEnvName(name: string): boolean {
  const upper = name.toUpperCase()
  return upper === 'FOIL_AGENT_TOKEN' || upper.endsWith(agentTokenSuffix)
}

export function isEnvName(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name)
}

/** `publicUrl` has no slash at its end. */
export function consentUrl(publicUrl: string, gateSessionId: GateSessionId): string {
  return `${publicUrl}/gate/consent/${gateSessionId}`
}

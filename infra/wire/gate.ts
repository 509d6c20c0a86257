import { z } from 'zod'
import { base32Characters, type GateSessionId, type Random } from '../ids.ts'

/** Returns a short code such as `K4-7M9`, which a signup's terminal and its consent page both show. */
export function generateConfirmationCode(random: Random): string {
  const text = base32Characters(random(5))
  return `${text.slice(0, 2)}-${text.slice(2)}`.toUpperCase()
}

export const confirmationCodeSchema = z
  .string()
  .describe(
    'Code to show beside the consent URL. The consent page shows the same code, so a person can check that both belong together.',
  )

const words = (text: string) => text.trim().split(/\s+/)

// Variables that change what a process runs or trusts, grouped by the programs that read them.
const criticalNames = new Set([
  // Shells, terminals and the programs they start.
  ...words(`_ BASHOPTS BASH_ENV BROWSER CDPATH COLUMNS COMSPEC EDITOR ENV EXECIGNORE FCEDIT FIGNORE FPATH GLOBIGNORE
    HISTFILE HOME IFS INPUTRC LESSCLOSE LESSOPEN LOGNAME MAILPATH MANPAGER OLDPWD PAGER PATH PATHEXT POSIXLY_CORRECT
    PROMPT_COMMAND PS0 PS1 PS2 PS3 PS4 PSMODULEPATH PWD SHELL SHELLOPTS SYSTEMROOT TEMP TERM TERMCAP TERMINFO
    TERMINFO_DIRS TMP TMPDIR USER USERNAME USERPROFILE VISUAL WINDIR ZDOTDIR APPDATA LOCALAPPDATA PROGRAMDATA`),
  // The C library.
  ...words(`GCONV_PATH GETCONF_DIR HOSTALIASES LANGUAGE LOCALDOMAIN LOCPATH MALLOC_TRACE NIS_PATH NLSPATH
    RESOLV_HOST_CONF RES_OPTIONS TZDIR`),
  // Proxies, certificates and endpoints.
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

// Prefixes of critical variables.
const criticalPrefixes =
  words(`BASH_FUNC_ BUNDLE_ BUN_CONFIG_ CARGO_ALIAS_ CARGO_BUILD_ CARGO_HTTP_ CARGO_NET_
  CARGO_REGISTRIES_ CARGO_SOURCE_ CARGO_TARGET_ COMPLUS_ CORECLR_ COR_ENABLE_ COR_PROFILER DOTNET_ DYLD_ ERL_ GIT_ GLIBC_ JAVA_TOOL_ JDK_
  LC_ LD_ LUA_ MALLOC_ NODE_ NPM_CONFIG_ OPENSSL_ PERL5 PIP_ PNPM_CONFIG_ SSH_ SSL_ UV_ XDG_ YARN_`)
// Matches all variables of the Python interpreter; PythonAnywhere is a company.
const pythonName = /^PYTHON(?!ANYWHERE)/

/** Returns true if setting the variable could take over the machine. Ignores case, as Windows does. */
export function isCriticalEnvName(name: string): boolean {
  const upper = name.toUpperCase()
  return (
    criticalNames.has(upper) ||
    pythonName.test(upper) ||
    criticalPrefixes.some((prefix) => upper.startsWith(prefix))
  )
}

/** Id of the built-in service. */
export const systemServiceId = 'tidegate'

/** Returns true for variables of Tidegate's own tools, which only the built-in service may set. */
export function isOperatorEnvName(name: string): boolean {
  return name.toUpperCase().startsWith('TIDEGATE_')
}

// Suffixes of variables that tell programs and agents where to send data, what to read first, what to run and whom to
// trust. docs/guide/gate-services.md lists them too.
const steeringSuffixes =
  words(`API_BASE API_HOST API_URL ARGS ASKPASS BASEURL BASE_URI BROWSER CACERT CA_BUNDLE CA_CERT
    CA_CERTS CA_FILE CERT_FILE CMD COMMAND EDITOR ENDPOINT ENDPOINTS EXEC FLAGS HOME HOOK HOOKS INDEX_URL INIT
    INSECURE INSTRUCTIONS MIRROR OPTIONS OPTS PAGER PATH PATHS PLUGIN PLUGINS PRELOAD PROFILE PROMPT PROXY
    RC REGISTRY RSH SHELL STARTUP WRAPPER`)
const steeringName = new RegExp(
  `CONFIG|(?:^|_)(?:BASE_URL|ENDPOINT_URL|MCP)(?:_|$)|(?:^|_)(?:${steeringSuffixes.join('|')})$`,
)
// Prefixes of variables that configure coding agents.
const agentPrefixes = words(
  'AIDER_ CLAUDE_ CLINE_ CODEX_ COPILOT_ CURSOR_ GEMINI_CLI_ GOOSE_ OPENCODE_ WINDSURF_',
)

/**
 * Returns true if the variable steers programs or agents, as `OPENAI_BASE_URL` does. A service may set it only with the
 * prefix of its verified domain.
 */
export function isSteeringEnvName(name: string): boolean {
  const upper = name.toUpperCase()
  return steeringName.test(upper) || agentPrefixes.some((prefix) => upper.startsWith(prefix))
}

/** Returns a service's prefix for variables: `acme-mail` -> `ACME_MAIL_`, `3d-print` -> `_3D_PRINT_`. */
export function envPrefixOf(name: string): string {
  const prefix = name.toUpperCase().replace(/[^A-Z0-9]+/g, '_')
  return `${prefix}_`.replace(/^(?=\d)/, '_')
}

/** Returns true if the name starts with the prefix (upper case). Ignores case, as Windows does. */
export function isUnderPrefix(name: string, prefix: string | null | undefined): boolean {
  return prefix != null && name.toUpperCase().startsWith(prefix)
}

/**
 * Returns the reason why a service may not set the variable, even with a person's approval; undefined if it may.
 * `prefix`: that of the service's own variables (`ACME_`), if its domain is verified.
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

/** Returns `ACME_MAIL_GATE_AGENT_TOKEN` for `acme-mail` or `acme--mail`, as the published SDKs do. */
export function agentTokenEnvName(serviceId: string): string {
  return serviceId.toUpperCase().replace(/[-_]+/g, '_') + agentTokenSuffix
}

/** Returns true for variables that Gate itself writes, which no service may set. */
export function isGateManagedEnvName(name: string): boolean {
  const upper = name.toUpperCase()
  return upper === 'FOIL_AGENT_TOKEN' || upper.endsWith(agentTokenSuffix)
}

export function isEnvName(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name)
}

/** Returns the URL of a consent page. `publicUrl` has no trailing slash. */
export function consentUrl(publicUrl: string, gateSessionId: GateSessionId): string {
  return `${publicUrl}/gate/consent/${gateSessionId}`
}

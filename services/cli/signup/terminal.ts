import open from 'open'
import yoctoSpinner from 'yocto-spinner'

export interface PageFlags {
  open: boolean
  json: boolean
}

/** Whether somebody sits in front of this machine and may be shown a page. */
function hasScreen({ env, platform }: NodeJS.Process): boolean {
  if (!process.stdout.isTTY || env.CI) return false
  return platform !== 'linux' || Boolean(env.DISPLAY || env.WAYLAND_DISPLAY || env.WSL_DISTRO_NAME)
}

/** Opens the page in a browser where there is one, and tells so; its address was printed. */
export async function openPage(url: string, flags: PageFlags): Promise<boolean> {
  if (!flags.open || flags.json || !hasScreen(process)) return false
  try {
    const browser = await open(url)
    browser.on('error', () => {})
    return true
  } catch {
    return false
  }
}

export interface Progress {
  /** `text` is asked for again each second. */
  show(text: () => string): void
  end(): void
}

/** One line that changes, on a terminal; elsewhere nothing. Other lines may be printed after `end`. */
export function createProgress(): Progress {
  if (!process.stderr.isTTY) return { show: () => {}, end: () => {} }
  // Ctrl-C is this command's own: it cancels the signup.
  const spinner = yoctoSpinner({ handleSignals: false })
  let current = () => ''
  let ticking: NodeJS.Timeout | undefined
  const draw = () => {
    spinner.text = current()
  }
  return {
    show(text) {
      current = text
      draw()
      ticking ??= setInterval(draw, 1000).unref()
      if (!spinner.isSpinning) spinner.start()
    },
    end() {
      clearInterval(ticking)
      ticking = undefined
      spinner.stop()
    },
  }
}

/** `14:05`, for milliseconds. */
export function clockText(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000))
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

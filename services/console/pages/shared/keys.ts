import { useEffect } from 'preact/hooks'

/** Calls `act` for each key that is pressed. */
export function useKeys(act: (event: KeyboardEvent) => void, inputs: readonly unknown[]): void {
  useEffect(() => {
    document.addEventListener('keydown', act)
    return () => document.removeEventListener('keydown', act)
  }, inputs)
}

/** The same without keys of a field that has the focus, and without those with a modifier. */
export function usePageKeys(act: (event: KeyboardEvent) => void, inputs: readonly unknown[]): void {
  useKeys((event) => {
    const { target, ctrlKey, metaKey, altKey } = event
    if (!isTyping(target) && !ctrlKey && !metaKey && !altKey) act(event)
  }, inputs)
}

/** `j` and `k` go through the links that the selector finds. */
export function useLinkKeys(selector: string): void {
  usePageKeys(
    ({ key }) => {
      const step = { j: 1, k: -1 }[key]
      const links = [...document.querySelectorAll<HTMLElement>(selector)]
      const focused = links.findIndex((link) => link.matches(':focus'))
      if (step) links[focused + step]?.focus()
    },
    [selector],
  )
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName))

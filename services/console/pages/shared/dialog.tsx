import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'

interface DialogProps {
  title: string
  /** Called on Esc and the close button. Unmount the dialog then. */
  onClose: () => void
  /** Keeps the dialog open. */
  isBusy?: boolean
  children: ComponentChildren
}

/** A modal dialog, open while mounted. */
export function Dialog({ title, onClose, isBusy = false, children }: DialogProps) {
  const id = useId()
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    // The focus returns to the button of the menu, not into the menu.
    document.querySelector<HTMLElement>(':popover-open')?.hidePopover()
    dialog.current?.showModal()
    // Returns the focus.
    return () => dialog.current?.close()
  }, [])
  return (
    // Keys in a dialog are not shortcuts of the page.
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onCancel={(event) => isBusy && event.preventDefault()}
      // Browsers close it at the second Esc without asking.
      onClose={() => (isBusy ? dialog.current?.showModal() : onClose())}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <button
          type="button"
          class="plain close"
          aria-label="Close"
          disabled={isBusy}
          onClick={onClose}
        >
          ×
        </button>
      </header>
      {children}
    </dialog>
  )
}

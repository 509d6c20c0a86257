import type { ComponentChildren, TargetedEvent } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { type FormDialogProps, showForm } from './form-dialog.tsx'
import { MutationFailure, useMutation } from './mutation.tsx'

interface MenuProps {
  /** Content of the button. */
  label: ComponentChildren
  /** Accessible name, if the label isn't text. */
  name?: string | undefined
  title?: string | undefined
  /** Class of the button; `plain` has no border or chevron. Default: a button with a chevron. */
  class?: string
  /** Links, buttons or fields, rendered while the menu is open. */
  children: ComponentChildren
}

/**
 * A button that opens a popover. It closes on Esc, on a click outside, and when a link or button in it is clicked, unless
 * that handler calls `preventDefault`. The arrow keys move the focus.
 */
export function Menu({ label, name, title, class: style = 'menu', children }: MenuProps) {
  const [isOpen, setOpen] = useState(false)
  const wasOpen = useRef(false)
  return (
    <>
      <button
        type="button"
        class={style}
        aria-expanded={isOpen}
        aria-label={name}
        title={title}
        // A click outside closes the popover before `onClick` runs, so the button would reopen it.
        onPointerDown={() => {
          wasOpen.current = isOpen
        }}
        onClick={() => {
          setOpen(!wasOpen.current)
          wasOpen.current = false
        }}
      >
        {label}
      </button>
      {isOpen && (
        <section
          class="menu-body"
          popover="auto"
          ref={showBelow}
          aria-label={name ?? (typeof label === 'string' ? label : title)}
          onToggle={({ newState }) => newState === 'closed' && setOpen(false)}
          onClick={closeOnChoice}
          onKeyDown={moveFocus}
        >
          {children}
        </section>
      )}
    </>
  )
}

interface MenuItem {
  label: string
  class?: 'danger'
  /** Form to open, or action to run. */
  action: FormDialogProps | (() => Promise<unknown>)
}

interface ActionMenuProps extends Omit<MenuProps, 'children'> {
  items: readonly (MenuItem | false)[]
}

/** A menu of actions, without those that are `false`. It is left out if there are none. */
export function ActionMenu({ items, ...menu }: ActionMenuProps) {
  const { run, failure } = useMutation()
  const shown = items.filter((item) => item !== false)
  if (shown.length === 0) return null
  return (
    <>
      <Menu {...menu}>
        {shown.map(({ label, class: style, action }) => (
          <button
            key={label}
            type="button"
            class={style}
            onClick={() => (typeof action === 'function' ? run(action) : showForm(action))}
          >
            {label}
          </button>
        ))}
      </Menu>
      <MutationFailure failure={failure} />
    </>
  )
}

const focusable = 'a, button, input, select'
const margin = 8

// Not defined in the component, where each render would show the menu again.
function showBelow(menu: HTMLElement | null): void {
  const button = menu?.previousElementSibling?.getBoundingClientRect()
  if (!menu || !button) return
  menu.showPopover()
  const { clientWidth, clientHeight } = document.documentElement
  const rightmost = clientWidth - menu.offsetWidth - margin
  const fitsBelow = button.bottom + menu.offsetHeight < clientHeight
  const top = fitsBelow || button.top < menu.offsetHeight ? button.bottom : button.top
  menu.style.left = `${Math.max(margin, Math.min(button.left, rightmost)) + window.scrollX}px`
  menu.style.top = `${top - (top === button.top ? menu.offsetHeight : 0) + window.scrollY}px`
  menu.querySelector<HTMLElement>(focusable)?.focus({ preventScroll: true })
}

function closeOnChoice(event: TargetedEvent<HTMLElement, MouseEvent>): void {
  const { target, currentTarget, defaultPrevented } = event
  const isChoice = target instanceof Element && target.closest('a, button:not([type="submit"])')
  if (isChoice && !defaultPrevented) currentTarget.hidePopover()
}

// Keys in a menu are not shortcuts of the page.
function moveFocus(event: TargetedEvent<HTMLElement, KeyboardEvent>): void {
  event.stopPropagation()
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (!step || (event.target instanceof HTMLElement && event.target.matches('select'))) return
  event.preventDefault()
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>(focusable)]
  const focused = all.findIndex((item) => item.matches(':focus'))
  all.at((focused + step) % all.length)?.focus()
}

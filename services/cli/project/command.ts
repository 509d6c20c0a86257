import type { Command } from 'commander'
import type { ProjectFlags } from './run.ts'

export function defineProject(command: Command): void {
  command
    .argument('<file>', 'file of the view, such as ./my-view.ts')
    .option('--new', 'create the file from a working template', false)
    .option('--once', 'exit once the view has caught up with the log', false)
    .action(async (file: string, flags: ProjectFlags & { new: boolean }) => {
      if (flags.new) return (await import('./template.ts')).writeTemplate(file)
      return (await import('./run.ts')).runProject(file, flags)
    })
}
